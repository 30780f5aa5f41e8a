package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gswitch/hostnic"
	"gswitch/pfc"
)

// oneHost collects a host alone.
type oneHost struct{ *Host }

func (oneHost) Describe(chan<- *prometheus.Desc)      {}
func (h oneHost) Collect(ch chan<- prometheus.Metric) { emitter(ch).host(h.Host) }

// What congestion control at the source counts: marks that came, marks of its
// own, quenching, and which classes are quenched now.
func TestHostCountsCongestion(t *testing.T) {
	h := oneHost{&Host{Name: "h1", Counts: hostnic.Counts{CEMarked: 5, SelfMarked: 7, Quenches: 2}, Flow: pfc.Stats{RxXOFF: [8]uint64{3: 4, 6: 1}}, Paused: 1<<3 | 1<<6, Quenched: 1 << 3}}
	const want = `
# HELP gswitch_host_ecn_marked_packets_total Data frames that arrived with a congestion mark.
# TYPE gswitch_host_ecn_marked_packets_total counter
gswitch_host_ecn_marked_packets_total{host="h1"} 5
# HELP gswitch_host_pfc_quenched Whether the neighbour has paused the class for longer than pfc: quench_after.
# TYPE gswitch_host_pfc_quenched gauge
gswitch_host_pfc_quenched{class="3",host="h1"} 1
gswitch_host_pfc_quenched{class="6",host="h1"} 0
# HELP gswitch_host_quenches_total Times that the neighbour paused a class for longer than pfc: quench_after.
# TYPE gswitch_host_quenches_total counter
gswitch_host_quenches_total{host="h1"} 2
# HELP gswitch_host_source_marked_packets_total Data frames that the host sent with a congestion mark of its own, since more than mark_above waited for its link.
# TYPE gswitch_host_source_marked_packets_total counter
gswitch_host_source_marked_packets_total{host="h1"} 7
`
	if err := testutil.CollectAndCompare(h, strings.NewReader(want), "gswitch_host_ecn_marked_packets_total", "gswitch_host_pfc_quenched", "gswitch_host_quenches_total", "gswitch_host_source_marked_packets_total"); err != nil {
		t.Error(err)
	}
}
