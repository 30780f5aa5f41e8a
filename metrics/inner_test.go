package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"gswitch/frame"
	"gswitch/policy"
	"gswitch/vswitch"
	wt "gswitch/wire/wiretest"
)

// What the queues inside an order and inside an admission count is exposed by what they say of it. Of four frames that
// come at once the order has room for three, and that of the shadow, which lets all pass, would have had it for one.
func TestInnerQueues(t *testing.T) {
	src, n := lab(t)
	cfg := *src.Units[0].Switch.Program().Config
	cfg.Ports = append([]vswitch.PortConfig{}, cfg.Ports...)
	q := &cfg.Ports[2].Scheduler.Queues[0]
	q.Order = policy.Order{Text: "gold = Queue(3 pkts); silver = Queue(2 pkts); out = Port(gold, silver); out.queueSelect = 0;"}
	q.Admission = policy.Shadow{Text: "other = Queue(1 pkts);"}
	if err := src.Units[0].Switch.Do(&vswitch.Apply{Config: &cfg}); err != nil {
		t.Fatal(err)
	}
	if err := src.Engine.Worker(0).Do(func(now frame.Time) { n.Advance(now) }); err != nil {
		t.Fatal(err)
	}
	f := wt.UDP4(wt.MAC(8), wt.MAC(7), "10.0.0.1", "10.0.0.2", 1, 2, make([]byte, 40))
	send(t, src, n, 0, f, f, f, f)

	want := `
# HELP gswitch_policy_packets_total Packets of a queue inside a policy since that came, by whether they were sent, dropped as they came (refused) or for others (pushed-out); of a shadow what would have been.
# TYPE gswitch_policy_packets_total counter
gswitch_policy_packets_total{kind="live",of="gold",outcome="pushed-out",port="p2",queue="0",switch="s1"} 0
gswitch_policy_packets_total{kind="live",of="gold",outcome="refused",port="p2",queue="0",switch="s1"} 1
gswitch_policy_packets_total{kind="live",of="gold",outcome="sent",port="p2",queue="0",switch="s1"} 1
gswitch_policy_packets_total{kind="live",of="silver",outcome="pushed-out",port="p2",queue="0",switch="s1"} 0
gswitch_policy_packets_total{kind="live",of="silver",outcome="refused",port="p2",queue="0",switch="s1"} 0
gswitch_policy_packets_total{kind="live",of="silver",outcome="sent",port="p2",queue="0",switch="s1"} 0
gswitch_policy_packets_total{kind="shadow",of="other",outcome="pushed-out",port="p2",queue="0",switch="s1"} 0
gswitch_policy_packets_total{kind="shadow",of="other",outcome="refused",port="p2",queue="0",switch="s1"} 3
gswitch_policy_packets_total{kind="shadow",of="other",outcome="sent",port="p2",queue="0",switch="s1"} 0
# HELP gswitch_policy_sent_bytes_total Bytes of the packets sent. Of a queue inside a policy, since that came; of a shadow what would have been.
# TYPE gswitch_policy_sent_bytes_total counter
gswitch_policy_sent_bytes_total{kind="live",of="gold",port="p2",queue="0",switch="s1"} 82
gswitch_policy_sent_bytes_total{kind="live",of="silver",port="p2",queue="0",switch="s1"} 0
gswitch_policy_sent_bytes_total{kind="shadow",of="other",port="p2",queue="0",switch="s1"} 0
# HELP gswitch_policy_value Sum of the values of the packets sent. Of a queue inside a policy, since that came; of a shadow what would have been.
# TYPE gswitch_policy_value gauge
gswitch_policy_value{kind="live",of="gold",port="p2",queue="0",switch="s1"} 0
gswitch_policy_value{kind="live",of="silver",port="p2",queue="0",switch="s1"} 0
gswitch_policy_value{kind="shadow",of="other",port="p2",queue="0",switch="s1"} 0
`
	c := NewCollector(func() *Snapshot { return Take(src) })
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "gswitch_policy_packets_total", "gswitch_policy_sent_bytes_total", "gswitch_policy_value"); err != nil {
		t.Error(err)
	}
}
