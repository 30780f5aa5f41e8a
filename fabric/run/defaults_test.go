package run

import "testing"

// Senders that begin at once at the rate of the link, and of which TIMELY is told nothing, keep
// the link of their receiver busy: the decreases by all that was sent before the first round
// trip was over do not end in a rate from which it would take seconds to come back.
func TestTimelyByDefault(t *testing.T) {
	const text = `version: 1
topology: {generate: star(17), classes: {host: {rate: 10Gbps, delay: 1us}}}
pfc: {enabled: true}
hosts: {cc: timely}
workload: [{group: all, kind: saturate, from: [h1..h16], to: [h17], size: 10MB}]
measure: {warmup: 100ms, links: ["s1:h17"]}
duration: 150ms
variants: [{name: frames}, {name: bursts, set: {hosts.segment: 16KB}}, {name: four, set: {hosts.segment: 16KB, "workload.all.from": [h1..h4]}}]
`
	_, f := ran(t, text)
	for i := range f.Runs {
		if used := f.Runs[i].Values["utilisation_share"]; used < 0.9 {
			t.Errorf("%s: %.3f of the link is used", f.Runs[i].Name, used)
		}
	}
}
