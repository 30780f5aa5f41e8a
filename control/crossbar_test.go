package control

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/wire"
)

// A crossbar whose way out is paused tells where frames wait, in the API and
// among the metrics: four fill the queue of the egress port, the others wait at
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
	ports := func() map[string]map[string]any {
		code, v := call(t, srv, "ListCrossbar", `{}`)
		if code != 200 {
			t.Fatal(code, v)
		}
		out := map[string]map[string]any{}
		list, _ := v["ports"].([]any)
		for _, p := range list {
			p := p.(map[string]any)
			out[p["switch"].(string)+"/"+p["port"].(string)] = p
		}
		return out
	}
	if p := ports(); len(p) != 2 || p["s1/p1"]["ingress_bytes"] != 0.0 || p["s1/p2"]["crossed_frames"] != 0.0 {
		t.Fatalf("before: %v", p)
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
	for ports()["s1/p2"]["crossed_frames"] != 4.0 {
		time.Sleep(time.Millisecond) // the crossbar needs its time; go test ends a test that waits in vain
	}
	p := ports()
	for _, c := range []struct {
		got  any
		want any
	}{
		{p["s1/p1"]["ingress_bytes"], 26000.0}, {p["s1/p1"]["ingress_peak"], 30000.0}, {p["s1/p1"]["egress_bytes"], 0.0},
		{class(p["s1/p1"])["ingress_drain_bytes"], 26000.0}, {class(p["s1/p1"])["pausing"], true}, {class(p["s1/p1"])["pauses"], 1.0},
		{p["s1/p2"]["egress_bytes"], 4000.0}, {p["s1/p2"]["egress_peak"], 4000.0}, {p["s1/p2"]["crossed_bytes"], 4000.0},
		{class(p["s1/p2"])["egress_drain_bytes"], 4000.0}, {class(p["s1/p2"])["pausing"], false},
		{p["s1/p1"]["refused_frames"], 0.0}, {p["s1/p1"]["refused_lossy_frames"], 0.0}, {p["s1/p2"]["skipped_frames"], 0.0}, {p["s1/p1"]["shunned"], false},
	} {
		if c.got != c.want {
			t.Errorf("%v, want %v, in %v", c.got, c.want, p)
			break
		}
	}
	seen := scrape(t, srv)
	for _, line := range []string{
		`gswitch_crossbar_drain_bytes{class="0",port="p1",side="ingress",switch="s1"} 26000`,
		`gswitch_crossbar_drain_bytes{class="0",port="p2",side="egress",switch="s1"} 4000`,
		`gswitch_crossbar_watermark_bytes{port="p1",side="ingress",switch="s1"} 30000`,
		`gswitch_crossbar_packets_total{outcome="crossed",port="p2",switch="s1"} 4`,
		`gswitch_crossbar_refused_packets_total{kind="lossless",port="p1",switch="s1"} 0`,
	} {
		if !strings.Contains(seen, line+"\n") {
			t.Errorf("no metric %s", line)
		}
	}
	call(t, srv, "ClearCounters", "{}")
	if p := ports(); p["s1/p2"]["crossed_frames"] != 0.0 || class(p["s1/p1"])["pauses"] != 0.0 || p["s1/p1"]["ingress_bytes"] != 26000.0 {
		t.Errorf("after clearing: %v", p)
	}
	if code, v := call(t, srv, "ListCrossbar", `{"switch":"s9"}`); code == 200 || !strings.Contains(v["message"].(string), `no switch "s9"`) {
		t.Error(code, v)
	}
}

// class is what a port tells of its only class.
func class(p map[string]any) map[string]any {
	list, _ := p["classes"].([]any)
	if len(list) != 1 {
		return nil
	}
	return list[0].(map[string]any)
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
