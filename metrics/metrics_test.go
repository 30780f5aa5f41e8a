package metrics

import (
	"gswitch/rocc/point"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/rocc"
	"gswitch/scheduler"
	"gswitch/vswitch"
)

// lab is a switch with two ports that lead nowhere, on an engine that stands
// still: everything runs on the test's goroutine.
func lab(t *testing.T) (Source, *vswitch.Node) {
	t.Helper()
	e, err := dataplane.New(dataplane.Config{Chunks: 4096})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	cfg := &vswitch.Config{Name: "s1", ID: 1, MAC: [6]byte{2, 0, 0, 0, 0, 1}, Class: vswitch.DefaultClassMaps(),
		PFC: vswitch.PFCConfig{Mode: pfc.PFC, Classes: 1 << 3},
		Ports: []vswitch.PortConfig{{Name: "p1", Enabled: true, ACL: "a"}, {},
			{Name: "p2", Enabled: true, Scheduler: scheduler.PortConfig{Rate: 1_000_000_000},
				Options: vswitch.Options{point.Name: point.Config{Queues: 1 << 5, Params: rocc.For(1_000_000_000)}}}},
		ACLs: []vswitch.ACL{{Name: "a", Default: pipeline.Action{Ops: pipeline.OpPermit}, Rules: []vswitch.ACLRule{
			{Name: "all", Action: pipeline.Action{Ops: pipeline.OpPermit | pipeline.OpCount}}}}},
	}
	sw, err := vswitch.New(cfg, []*frame.Pool{e.Worker(0).Pool()})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.AddNode(0, sw.Nodes[0]); err != nil {
		t.Fatal(err)
	}
	for i, name := range map[int]string{0: "p1", 2: "p2"} {
		if _, err := e.AddPort(0, sw.Nodes[0], uint16(i), dataplane.PortSpec{Name: PortName("s1", name), Kind: dataplane.Null}); err != nil {
			t.Fatal(err)
		}
	}
	return Source{Engine: e, Units: []Unit{{sw, []*dataplane.Worker{e.Worker(0)}}},
		Config: ConfigState{Generation: 1, ReloadSuccess: true, ReloadTime: time.Unix(1700000000, 0), Version: "test"}}, sw.Nodes[0]
}

func send(t *testing.T, src Source, n *vswitch.Node, port uint16, frames ...[]byte) {
	t.Helper()
	err := src.Engine.Worker(0).Do(func(now frame.Time) {
		var v []frame.Ref
		pool := src.Engine.Worker(0).Pool()
		for _, b := range frames {
			r := pool.New(b)
			pool.Reset(r)
			pool.SetBytes(r, b)
			v = append(v, r)
		}
		n.Receive(now, port, v)
		n.Advance(now)
		var out [64]frame.Ref
		for _, p := range []uint16{0, 2} {
			for _, r := range out[:n.Transmit(now+frame.Millisecond, p, out[:])] {
				pool.Free(r)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCollect(t *testing.T) {
	src, node := lab(t)
	unicast := append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5}, make([]byte, 50)...)
	reserved := append([]byte{1, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 8, 0x88, 0xcc}, make([]byte, 50)...)
	send(t, src, node, 0, unicast, unicast, reserved)

	scrapes := 0
	r := NewRegistry(func() *Snapshot { scrapes++; return Take(src) })
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	want := `
# HELP gswitch_acl_rule_packets_total Frames that a named rule of an access list matched.
# TYPE gswitch_acl_rule_packets_total counter
gswitch_acl_rule_packets_total{acl="a",rule="all",switch="s1"} 2
# HELP gswitch_config_generation Number of the configuration in force, from 1.
# TYPE gswitch_config_generation gauge
gswitch_config_generation 1
# HELP gswitch_drops_total Frames dropped, by the port they arrived at (empty: made by the switch itself) and reason.
# TYPE gswitch_drops_total counter
gswitch_drops_total{port="p1",reason="arena-exhausted",switch="s1"} 0
gswitch_drops_total{port="p1",reason="headroom-full",switch="s1"} 0
gswitch_drops_total{port="p1",reason="pfc-watchdog",switch="s1"} 0
gswitch_drops_total{port="p1",reason="reserved-multicast",switch="s1"} 1
gswitch_drops_total{port="p1",reason="worker-ring",switch="s1"} 0
gswitch_drops_total{port="p2",reason="arena-exhausted",switch="s1"} 0
gswitch_drops_total{port="p2",reason="headroom-full",switch="s1"} 0
gswitch_drops_total{port="p2",reason="pfc-watchdog",switch="s1"} 0
gswitch_drops_total{port="p2",reason="worker-ring",switch="s1"} 0
# HELP gswitch_fdb_learned_total Addresses learned.
# TYPE gswitch_fdb_learned_total counter
gswitch_fdb_learned_total{switch="s1"} 1
# HELP gswitch_fdb_port_entries Addresses of the forwarding database that were learned at the port.
# TYPE gswitch_fdb_port_entries gauge
gswitch_fdb_port_entries{port="p1",switch="s1"} 1
gswitch_fdb_port_entries{port="p2",switch="s1"} 0
# HELP gswitch_port_info What a port is. Always 1.
# TYPE gswitch_port_info gauge
gswitch_port_info{interface="",kind="null",netns="",port="p1",queues="1",switch="s1",wire="",workers="0",xdp_mode=""} 1
gswitch_port_info{interface="",kind="null",netns="",port="p2",queues="1",switch="s1",wire="",workers="0",xdp_mode=""} 1
# HELP gswitch_port_receive_packets_total Frames that arrived at the port.
# TYPE gswitch_port_receive_packets_total counter
gswitch_port_receive_packets_total{port="p1",switch="s1"} 3
gswitch_port_receive_packets_total{port="p2",switch="s1"} 0
# HELP gswitch_port_transmit_bytes_total Bytes of the frames that left, without preamble, checksum and gap.
# TYPE gswitch_port_transmit_bytes_total counter
gswitch_port_transmit_bytes_total{port="p1",switch="s1"} 0
gswitch_port_transmit_bytes_total{port="p2",switch="s1"} 64
# HELP gswitch_port_up Whether the port is enabled and has a link.
# TYPE gswitch_port_up gauge
gswitch_port_up{port="p1",switch="s1"} 1
gswitch_port_up{port="p2",switch="s1"} 1
# HELP gswitch_rocc_fair_rate_bytes_per_second Rate that RoCC allows each flow of the egress queue, where the switch works it out.
# TYPE gswitch_rocc_fair_rate_bytes_per_second gauge
gswitch_rocc_fair_rate_bytes_per_second{port="p2",queue="5",switch="s1"} 1.25e+08
# HELP gswitch_rocc_notices_total Notices that RoCC sent, or could not make (unsent).
# TYPE gswitch_rocc_notices_total counter
gswitch_rocc_notices_total{outcome="sent",port="p2",queue="5",switch="s1"} 0
gswitch_rocc_notices_total{outcome="unsent",port="p2",queue="5",switch="s1"} 0
# HELP gswitch_rocc_updates_total Periods of RoCC's controller, by what it did: tuned, halved (the queue grew too fast), cut (it was too long).
# TYPE gswitch_rocc_updates_total counter
gswitch_rocc_updates_total{branch="cut",port="p2",queue="5",switch="s1"} 0
gswitch_rocc_updates_total{branch="halved",port="p2",queue="5",switch="s1"} 0
gswitch_rocc_updates_total{branch="tuned",port="p2",queue="5",switch="s1"} 0
# HELP gswitch_table_entries Entries of a table.
# TYPE gswitch_table_entries gauge
gswitch_table_entries{switch="s1",table="acl"} 1
gswitch_table_entries{switch="s1",table="fdb"} 1
gswitch_table_entries{switch="s1",table="routes"} 0
`
	err = testutil.GatherAndCompare(r, strings.NewReader(want), "gswitch_acl_rule_packets_total", "gswitch_config_generation", "gswitch_drops_total",
		"gswitch_fdb_learned_total", "gswitch_fdb_port_entries", "gswitch_port_info", "gswitch_port_receive_packets_total", "gswitch_port_transmit_bytes_total", "gswitch_port_up",
		"gswitch_rocc_fair_rate_bytes_per_second", "gswitch_rocc_notices_total", "gswitch_rocc_updates_total", "gswitch_table_entries")
	if err != nil {
		t.Error(err)
	}
	if scrapes != 2 {
		t.Errorf("%d snapshots for 2 scrapes", scrapes)
	}
}

// What the dashboards and the documentation rely on is there.
func TestNames(t *testing.T) {
	src, node := lab(t)
	send(t, src, node, 0, append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5}, make([]byte, 50)...))
	families, err := NewRegistry(func() *Snapshot { return Take(src) }).Gather()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, f := range families {
		have[f.GetName()] = true
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "process_cpu_seconds_total"} {
		if !have[name] {
			t.Errorf("%s is not exposed", name)
		}
	}
	for _, name := range []string{"build_info", "port_info", "queue_bytes", "queue_delay_seconds", "queue_ecn_marked_packets_total", "queue_persistent_watermark_bytes",
		"pg_bytes", "pg_headroom_size_bytes", "buffer_pool_bytes", "buffer_size_bytes", "worker_busy_seconds_total", "worker_vector_packets", "worker_lateness_seconds", "worker_missing_chunks_total",
		"class_receive_packets_total", "gc_cycles_total", "memory_free_chunks", "config_last_reload_timestamp_seconds"} {
		if !have["gswitch_"+name] {
			t.Errorf("gswitch_%s is not exposed", name)
		}
	}
}

// A histogram's buckets hold what lies below their bounds, and no more.
func TestDelayHistogramIsExact(t *testing.T) {
	var h histogram.Buckets
	for _, d := range []frame.Time{0, 255, 256, 1000, 1024, 1 << 20, 1 << 33} {
		h.Observe(d)
	}
	if problems, err := testutil.CollectAndLint(collectOne{delayHistogram(queueDelay, &h, "s", "p", "0")}); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	want := map[float64]uint64{256e-9: 2, 1024e-9: 4, 4096e-9: 5, 1048576e-9: 5, 4194304e-9: 6, 1073741824e-9: 6}
	got := bounds()
	for i, n := range h.Count {
		if n > 0 {
			_, hi := histogram.Bounds(i)
			observe(got, uint64(hi), n)
		}
	}
	for le, n := range want {
		if got[le] != n {
			t.Errorf("le %g: %d, want %d", le, got[le], n)
		}
	}
}
