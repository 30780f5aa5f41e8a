package e2e

import (
	"math"
	"testing"
)

// fairShare has two hosts send to a third through a congestion point of RoCC, which
// notifies them by ICMP messages of the fair rate. Frames have 1000 bytes of
// payload in 1058: a half of 40 Gb/s is 18.9 of payload.
const fairShare = `version: 1
topology: {generate: star(3), classes: {host: {rate: 40Gbps, delay: 1us}}}
switch: {rocc: {enabled: true, cut: half}, buffer: {size: 8MB}}
hosts: {cc: rocc, pace_jitter: 0.1, payload: 1000B, transport: {ack_every: 8}}
workload:
  - {group: a, kind: saturate, from: [h1], to: [h3], size: 1MB}
  - {group: b, kind: saturate, from: [h2], to: [h3], size: 1MB}
measure: {warmup: 2ms, sample: 2us, bin: 100us, queues: ["s1:h3"]}
duration: 3ms
expect:
  - drops_total == 0
  - between(a.goodput_bps, 17.01Gbps, 20.79Gbps)
  - between(b.goodput_bps, 17.01Gbps, 20.79Gbps)
  - between(queue_mean_bytes, 120KB, 180KB)
`

// tenShares has ten send. A tenth of 40 Gb/s is 3.78 of payload. At first they
// bring ten times what leaves: the switch pauses them, as the publication's does.
const tenShares = `version: 1
topology: {generate: star(11), classes: {host: {rate: 40Gbps, delay: 1us}}}
switch: {rocc: {enabled: true, cut: half}, buffer: {size: 16MB, xoff: 50KB, xon_offset: 1KB}}
pfc: {enabled: true}
hosts: {cc: rocc, pace_jitter: 0.1, payload: 1000B, transport: {ack_every: 8}}
workload:
  - {group: senders, kind: saturate, from: [h2..h11], to: [h1], size: 1MB}
measure: {warmup: 2ms, sample: 2us, bin: 500us, queues: ["s1:h1"]}
duration: 3ms
expect:
  - drops_total == 0
  - between(senders.goodput_bps, 34.02Gbps, 41.58Gbps)
  - senders.jain_index > 0.99
  - between(queue_mean_bytes, 120KB, 180KB)
`

// On real frames, too, each sender gets its share within 10 % and the queue
// stands within 20 % of its reference, with two and with ten: the scenario says
// so, and fails else.
func TestRoCCSettles(t *testing.T) {
	for what, text := range map[string]string{"rocc": fairShare, "rocc-ten": tenShares} {
		t.Run(what, func(t *testing.T) {
			file := aScenario(t, what, text)
			f, _ := runLive(t, file)
			v := f.Runs[0].Values
			t.Logf("%.2f Gb/s together, queue %.0f bytes, %v pauses", v["goodput_bps"]/1e9, v["queue_mean_bytes"], v["pauses_total"])
			fair := v["goodput_bps"] / map[string]float64{"rocc": 2, "rocc-ten": 10}[what]
			for _, s := range f.Runs[0].Series {
				if s.Name != "goodput" {
					continue
				}
				sum, n := 0.0, 0.0
				for i, at := range s.T {
					if at > 2e-3 { // the warm-up is over
						sum, n = sum+s.V[i], n+1
					}
				}
				if rate := sum / n; math.Abs(rate-fair) > 0.1*fair {
					t.Errorf("%s gets %.2f Gb/s, its share is %.2f", s.Object, rate/1e9, fair/1e9)
				}
			}
			if left := wiresLeft(nameOf(file)); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
