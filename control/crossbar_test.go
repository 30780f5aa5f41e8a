package control

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gswitch/frame"
	"gswitch/wire"
)

// A crossbar whose way out is paused says where frames wait, among the counters
// and the metrics: four fill the queue of the egress port, the others wait at
// the port they came by, which pauses its neighbour. Its links are so slow that
// nothing of it is over while the test looks.
func TestCrossbarIsSeen(t *testing.T) {
	d, srv := run(t, `version: 1
memory: {frames: 8192}
control: {socket: /run/gswitch-test/never.sock}
switches:
  - name: s1
    pfc: {classes: [0]}
    crossbar: {ingress: 64KiB, egress: 4KiB, pause: 16KiB, unpause: 8KiB, speedup: 64}
    ports:
      - {name: p1, wire: a, rate: 1Mbps}
      - {name: p2, wire: b, rate: 1Mbps}
  - name: s2
    ports:
      - {name: p1, wire: a}
      - {name: p2, wire: c}
  - name: s3
    ports:
      - {name: p1, wire: b}
      - {name: p2, wire: c}
`)
	// What is not 0, by name, port, labels and kind.
	counted := func() map[string]float64 {
		code, v := call(t, srv, "ListCounters", `{"feature":"crossbar"}`)
		if code != 200 {
			t.Fatal(code, v)
		}
		out := map[string]float64{}
		list, _ := v["counters"].([]any)
		for _, c := range list {
			c := c.(map[string]any)
			key := fmt.Sprint(c["name"], " ", c["port"])
			labels, _ := c["labels"].([]any)
			for _, l := range labels {
				key += fmt.Sprint(" ", l.(map[string]any)["value"])
			}
			if kind := c["kind"]; kind != "" {
				key += fmt.Sprint(" ", kind)
			}
			if v := c["value"].(float64); v != 0 {
				out[key] = v
			}
		}
		return out
	}
	if v := counted(); len(v) != 0 {
		t.Fatalf("before: %v", v)
	}
	w := d.engine.Worker(0)
	if err := w.Do(func(now frame.Time) {
		node := d.units[0].sw.Nodes[0]
		pause := make([]byte, wire.MinFrame)
		f := wire.PFCFields{Src: wire.MAC{2, 0, 0, 0, 0, 9}, Enable: 1, Quanta: [8]uint16{0xffff}}
		f.Encode(pause)
		node.Receive(now, 1, []frame.Ref{w.Pool().New(pause)})
		for range 30 {
			b := append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5}, make([]byte, 986)...)
			node.Receive(now, 0, []frame.Ref{w.Pool().New(b)})
		}
	}); err != nil {
		t.Fatal(err)
	}
	for counted()["crossbar_packets_total p2 crossed"] != 4 {
		time.Sleep(time.Millisecond) // the crossbar needs its time; go test ends a test that waits for ever
	}
	want := map[string]float64{
		"crossbar_drain_bytes p1 0 ingress": 26000, "crossbar_watermark_bytes p1 ingress": 30000, "crossbar_pauses_total p1 0": 1, "crossbar_chunks p1": 26,
		"crossbar_drain_bytes p2 0 egress": 4000, "crossbar_watermark_bytes p2 egress": 4000, "crossbar_packets_total p2 crossed": 4,
	}
	if diff := cmp.Diff(want, counted()); diff != "" {
		t.Error(diff)
	}
	seen := scrape(t, srv)
	for _, line := range []string{
		`gswitch_crossbar_drain_bytes{class="0",port="p1",side="ingress",switch="s1"} 26000`,
		`gswitch_crossbar_drain_bytes{class="0",port="p2",side="egress",switch="s1"} 4000`,
		`gswitch_crossbar_watermark_bytes{port="p1",side="ingress",switch="s1"} 30000`,
		`gswitch_crossbar_packets_total{outcome="crossed",port="p2",switch="s1"} 4`,
		`gswitch_crossbar_chunks{port="p1",switch="s1"} 26`,
		`gswitch_crossbar_short_packets_total{port="p1",switch="s1"} 0`,
		`gswitch_crossbar_refused_packets_total{kind="lossless",port="p1",switch="s1"} 0`,
	} {
		if !strings.Contains(seen, line+"\n") {
			t.Errorf("no metric %s", line)
		}
	}
	call(t, srv, "ClearCounters", "{}")
	delete(want, "crossbar_packets_total p2 crossed")
	delete(want, "crossbar_pauses_total p1 0")
	if diff := cmp.Diff(want, counted()); diff != "" {
		t.Errorf("after clearing: %s", diff)
	}
}

func scrape(t *testing.T, srv *httptest.Server) string {
	t.Helper()
	r, err := http.Get(srv.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
