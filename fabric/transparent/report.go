package transparent

import (
	"fmt"
	"io"
	"time"

	"gswitch/fabric/load"
	"gswitch/scheduler"
	"gswitch/table"
	"gswitch/wire"
)

// Report is both runs: bare, and with ghosts.
type Report struct {
	Options Options   `json:"-"`
	Runs    [2]Result `json:"runs"`
}

// Goodput is the most that TCP can carry on a link of the given rate with
// packets of the given length: headers with time stamps, and what a frame
// occupies on an Ethernet link besides, count.
func Goodput(rate float64, packet, around int) float64 {
	const options = 12 // RFC 7323 time stamps, padded
	return rate * float64(packet-wire.IPv4Len-wire.TCPLen-options) / float64(packet+around+wire.EthernetLen+scheduler.EthernetOverhead)
}

// possible returns the most goodput of each run.
func (r *Report) possible() (bare, ghosts float64) {
	rate, packet := float64(r.Options.Rate), int(r.Runs[1].Bump.Packet)
	mtu := int(r.Runs[1].Bump.Mtu)
	return Goodput(rate, mtu, 0), Goodput(rate, packet, mtu-packet)
}

// Write writes the report for humans.
func (r *Report) Write(w io.Writer) error {
	o, a, b := &r.Options, &r.Runs[0], &r.Runs[1]
	fmt.Fprintf(w, "\n%s, links of %v, T %v, %s, %v of load; unmodified TCP of the hosts' kernels\n", topology, o.Rate, o.BaseRTT, o.Congestion, o.Duration)
	t := table.Right("", "bare", "ghost", "bare/ghost")
	row := func(what string, x, y, factor string) { t.Row(what, x, y, factor) }
	times := func(what string, x, y float64) {
		f := "-"
		if y > 0 {
			f = fmt.Sprintf("%.1f x", x/y)
		}
		row(what, span(x), span(y), f)
	}
	row("port with the longest queue", a.Port, b.Port, "")
	times("what frames waited there, p50", float64(a.QueueP50), float64(b.QueueP50))
	times("p99", float64(a.QueueP99), float64(b.QueueP99))
	row("mean over the run", kb(a.Mean), kb(b.Mean), ratio(a.Mean, b.Mean))
	row("longest", kb(float64(a.Peak)), kb(float64(b.Peak)), ratio(float64(a.Peak), float64(b.Peak)))
	row("frames that switches' queues refused", fmt.Sprint(a.Drops), fmt.Sprint(b.Drops), "")
	for _, l := range []struct {
		what string
		x, y *load.Latency
	}{{"requests to the loaded host", a.Beside, b.Beside}, {"requests between other hosts", a.Across, b.Across}, {"requests on the idle fabric", a.Idle, b.Idle}} {
		times(l.what+", p50", 1000*l.x.P50, 1000*l.y.P50)
		times("p99", 1000*l.x.P99, 1000*l.y.P99)
		times("p99.9", 1000*l.x.P999, 1000*l.y.P999)
	}
	pa, pb := r.possible()
	row("one stream, idle fabric", share(a.Single, pa), share(b.Single, pb), "")
	sa, sb := sum(a.Incast), sum(b.Incast)
	row(fmt.Sprintf("%d streams to one host", len(a.Incast)), share(sa, pa), share(sb, pb), "")
	row("slowest of them", bits(least(a.Incast)), bits(least(b.Incast)), "")
	if err := t.Print(w); err != nil {
		return err
	}
	g := b.Bump
	_, err := fmt.Fprintf(w, "Goodput is what servers received and compared, with its share of what the link can carry of it: %s bare, %s in packets of %d bytes with a channel's headers.\nGhost of the loaded host: %d packets carried, %d delivered, %d passed; %d frames sent again; frames late p50 %v, p99 %v.\n",
		bits(pa), bits(pb), g.Packet, g.Carried, g.Delivered, g.PassedOut+g.PassedIn, g.Retransmissions, time.Duration(g.FrameLateP50), time.Duration(g.FrameLateP99))
	return err
}

func span(ns float64) string {
	return time.Duration(ns).Round(10 * time.Microsecond).String()
}

func kb(bytes float64) string { return fmt.Sprintf("%.1f kB", bytes/1000) }

func bits(bps float64) string { return fmt.Sprintf("%.2f Mb/s", bps/1e6) }

func share(bps, of float64) string { return fmt.Sprintf("%s, %.0f %%", bits(bps), 100*bps/of) }

func ratio(x, y float64) string {
	if y <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f x", x/y)
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

func least(v []float64) float64 {
	m := v[0]
	for _, x := range v {
		m = min(m, x)
	}
	return m
}
