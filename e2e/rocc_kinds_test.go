package e2e

import (
	"strings"
	"testing"
)

// fourShares has four send to a fifth through a congestion point.
const fourShares = `version: 1
topology: {generate: star(5), classes: {host: {rate: 40Gbps, delay: 1us}}}
switch: {SWITCH, buffer: {size: 16MB}}
hosts: {HOSTS, payload: 1000B, transport: {ack_every: 8}}
workload:
  - {group: senders, kind: saturate, from: [h2..h5], to: [h1], size: 1MB}
measure: {warmup: 2ms, sample: 2us, bin: 500us, queues: ["s1:h1"]}
duration: 4ms
expect:
  - drops_total == 0
`

// On real frames, too, a table of four places notifies four senders, hosts that
// run the controller come to one rate, and QCN's messages hold its queue. The
// scenarios say what must come out, and fail else. QCN makes no rates equal in a
// time as short as this, neither here nor in virtual time.
func TestRoCCKindsSettle(t *testing.T) {
	const fair = `
  - between(senders.goodput_bps, 34.02Gbps, 41.58Gbps)
  - senders.jain_index > 0.99
  - between(queue_mean_bytes, 120KB, 180KB)
`
	for name, v := range map[string]struct{ sw, hosts, expect string }{
		// Four in each of a hundred periods at most.
		"rocc-table": {"rocc: {enabled: true, cut: half, table: aged, flows: 4}", "cc: rocc, pace_jitter: 0.1", fair + "  - notices_total <= 404\n  - notices_total > 200\n"},
		"rocc-hosts": {"rocc: {enabled: true, cut: half, compute: hosts}", "cc: rocc, pace_jitter: 0.1", fair + "  - notices_total > 200\n"},
		"qcn":        {"qcn: {enabled: true}", "cc: qcn", "\n  - senders.goodput_bps > 34.02Gbps\n  - queue_mean_bytes < 52KB\n  - notices_total > 10\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("SWITCH", v.sw, "HOSTS", v.hosts).Replace(strings.TrimSuffix(fourShares, "\n")) + v.expect
			file := aScenario(t, name, text)
			f, _ := runLive(t, file)
			got := f.Runs[0].Values
			t.Logf("%.2f Gb/s together, Jain %.4f, queue %.0f bytes, %v notices", got["goodput_bps"]/1e9, got["senders.jain_index"], got["queue_mean_bytes"], got["notices_total"])
			if left := wiresLeft(nameOf(file)); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
