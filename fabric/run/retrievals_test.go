package run

import (
	"math"
	"strings"
	"testing"

	"gswitch/frame"
)

// A host under DeTail's switches: 1530 bytes on the wire for a full frame of
// TCP, 70 of them headers; 5.476 us of cable and transceivers; 4.224 us of
// forwarding, and a crossbar of four times the rate.
const retrieving = `version: 1
topology: {generate: star(4), classes: {host: {rate: 1Gbps, delay: 5476ns}}}
switch: {crossbar: {enabled: true, latency: 4224ns, pause: 8KiB, unpause: 4557B}}
hosts:
  payload: 1460B
  sizes: {data: 70, ack: 84}
  class: 7
  cc: newreno
  params: {initial: 1460B, abc_limit: 1}
  transport: {mode: newreno, rto_low: 10ms, rto_high: 10ms}
workload:
  - {group: web, kind: retrievals, from: [h1], to: [h2], size: 10B, responses: [ANSWER], rate: 20, handshake: true, count: 8}
measure: {fct: arrival, sample: 1ms, sizes: [{name: answers, from: 1KB}]}
duration: 2s
until: done
expect:
  - drops_total == 0
`

// passing is how long a frame takes from one host to another by one switch.
func passing(bytes frame.Time) frame.Time { return 2*(8*bytes+5476) + 4224 + 2*bytes }

// answering is passing of a message that follows the acknowledgement of the one
// it answers, a frame of 84 bytes that TCP would send along with it: it waits
// for it at the host, and at the switch as far as it has not gained on it.
func answering(bytes frame.Time) frame.Time {
	return passing(bytes) + 8*84 + max(0, (2+8)*(84-bytes))
}

// The completion of a retrieval alone in the network is that of its four
// messages, and of the acknowledgements that slow start waits for.
func TestRetrievalAlone(t *testing.T) {
	open := passing(71) + answering(71) + answering(80)
	for answer, want := range map[string]frame.Time{
		"1460B": open + answering(1530),
		// 1, 2 and 1 frames; what follows waits for acknowledgements, and of the
		// two that leave together the first brings the last one on its way.
		"5840B": open + answering(1530) + 2*passing(1530) + 2*passing(84),
	} {
		f := execute(t, strings.ReplaceAll(retrieving, "ANSWER", answer), Options{})
		v := f.Runs[0].Values
		for _, key := range []string{"web.fct_p50_seconds", "web.fct_max_seconds", "answers.fct_max_seconds", "web.completion_max_seconds"} {
			if math.Abs(v[key]-want.Seconds()) > 1e-12 {
				t.Errorf("%s: %s is %.9f, want %.9f", answer, key, v[key], want.Seconds())
			}
		}
		if v["web.flows_total"] != 8 || v["web.timeout_share"] != 0 || v["web.retransmissions_total"] != 0 {
			t.Errorf("%s: %v flows, timeouts of %v, %v frames sent again", answer, v["web.flows_total"], v["web.timeout_share"], v["web.retransmissions_total"])
		}
	}
}

// Where everything is lost for a while, every retrieval that began then has had
// a timeout, whichever of its messages it was, and none of the others.
func TestRetrievalTimeouts(t *testing.T) {
	f := execute(t, strings.ReplaceAll(strings.ReplaceAll(retrieving, "ANSWER", "2KB"), "until: done", "faults: [{kind: loss, link: \"h1:s1\", share: 1, stop: 100ms}]\nuntil: done"), Options{})
	r := &f.Runs[0]
	late := 0
	for _, w := range r.Flows {
		if w.FCT == 0 {
			t.Errorf("%+v is not complete", w)
		}
		if w.Start < 0.1 {
			late++
		}
		if (w.Start < 0.1) != (w.Retrans > 0) {
			t.Errorf("%+v", w)
		}
	}
	if share := r.Values["timeout_share"]; late == 0 || late == len(r.Flows) || share != float64(late)/float64(len(r.Flows)) {
		t.Errorf("%v of the flows had a timeout, want %d of %d", share, late, len(r.Flows))
	}
}
