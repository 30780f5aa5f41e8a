package e2e

import "testing"

// fairShare has two hosts send to a third through a congestion point of RoCC, which
// tells them by ICMP messages what rate is fair. Frames have 1000 bytes of
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

// On real frames, too, each sender gets its share within 10 % and the queue
// stands within 20 % of its reference: the scenario says so, and fails else.
func TestRoCCSettles(t *testing.T) {
	file := aScenario(t, "rocc", fairShare)
	f, _ := runLive(t, file)
	v := f.Runs[0].Values
	t.Logf("%.2f and %.2f Gb/s, queue %.0f bytes", v["a.goodput_bps"]/1e9, v["b.goodput_bps"]/1e9, v["queue_mean_bytes"])
	if left := wiresLeft(nameOf(file)); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
