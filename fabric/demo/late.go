package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// Lateness says whether the machine kept up. Where programs wait for a
// processor, rates and latencies are those of the machine, not of the network.
type Lateness struct {
	SwitchP99, SwitchMax time.Duration // from the instant of a link's timer to the loop that served it
	Busy                 float64       // share of its time that the busiest worker worked
	HostP90, HostMax     time.Duration // that a program in a host overslept
}

// A switch that is later than tooLateSwitch leaves links idle that have
// something to send; from tooLateHost on the requests' latency is made of the
// wait for a processor, not of the queues, which ECN keeps at some milliseconds.
const (
	tooLateSwitch = time.Millisecond
	tooLateHost   = time.Millisecond
)

func (l *Lateness) tooBusy() bool { return l.SwitchP99 > tooLateSwitch || l.HostP90 > tooLateHost }

func (l *Lateness) write(w io.Writer) {
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	heading(w, "lateness in ms: how long programs waited for a processor")
	fmt.Fprintf(w, "switches  P99 %8.2f  max %8.2f  (working %.0f%% of the time)\n", ms(l.SwitchP99), ms(l.SwitchMax), l.Busy*100)
	fmt.Fprintf(w, "   hosts  P90 %8.2f  max %8.2f\n", ms(l.HostP90), ms(l.HostMax))
	if l.tooBusy() {
		fmt.Fprint(w, "NOTE: this machine was too busy: programs waited for a processor, so that\n"+
			"rates and latencies above say more of it than of the network. Run the demo\n"+
			"while nothing else runs, or with slower links (--rate).\n")
	}
}

// napTime is short against what a request takes in the queues.
const napTime = 5 * time.Millisecond

// watchNaps measures until ctx ends how much longer than napTime a nap of
// napTime takes: so long a program on this machine waits for a processor.
func watchNaps(ctx context.Context, l *Lateness) {
	var over []time.Duration
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			l.addNaps(over)
			return
		case <-time.After(napTime):
			over = append(over, time.Since(began)-napTime)
		}
	}
}

func (l *Lateness) addNaps(over []time.Duration) {
	if len(over) == 0 {
		return
	}
	slices.Sort(over)
	l.HostP90, l.HostMax = over[len(over)*9/10], over[len(over)-1]
}
