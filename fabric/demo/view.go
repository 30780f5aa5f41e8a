package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/control/api"
	"gswitch/units"
)

const (
	watchInterval = 500 * time.Millisecond
	plainInterval = 2 * time.Second // between lines where there is no terminal
)

func winsize(f *os.File) (*unix.Winsize, error) {
	return unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
}

// watch shows what the ports carry until ctx ends. On a terminal that is
// large enough it is a table that is drawn over itself, otherwise a line now
// and then.
func (d *demo) watch(ctx context.Context) {
	stream, err := d.client.Watch(ctx, &api.WatchRequest{IntervalMs: uint32(watchInterval / time.Millisecond)})
	if err != nil {
		if ctx.Err() == nil {
			fmt.Fprintf(d.Out, "no live view: %v\n", err)
		}
		return
	}
	defer stream.Close()
	began, drawn := time.Now(), 0
	said := began
	for n := 0; stream.Receive(); n++ {
		if n == 0 {
			continue // it has no rates yet
		}
		ports := stream.Msg().Ports
		rows, columns, terminal := isTerminal(d.Out)
		left := max(0, d.Duration-time.Since(began))
		switch {
		case terminal && rows > len(ports)+3 && columns >= viewWidth:
			if drawn > 0 {
				fmt.Fprintf(d.Out, "\x1b[%dA", drawn) // up, to where it began
			}
			drawn = writeView(d.Out, ports, d.Rate, d.hostRate(), left, true)
		case time.Since(said) >= plainInterval:
			said = time.Now()
			fmt.Fprintln(d.Out, summary(ports, left))
		}
	}
	if err := stream.Err(); err != nil && ctx.Err() == nil {
		fmt.Fprintf(d.Out, "the live view ended: %v\n", err)
	}
}

const (
	barWidth  = 20
	viewWidth = 74
)

// writeView draws the table and returns how many lines it has. color turns on
// the escape sequences of a terminal. Bars are shares of the links' rates.
func writeView(w io.Writer, ports []*api.Port, rate, hostRate units.Rate, left time.Duration, color bool) int {
	var b strings.Builder
	end := "\n"
	if color {
		end = "\x1b[K\n" // clear what an earlier, longer line left
	}
	fmt.Fprintf(&b, "%-8s %-8s %10s %10s %9s  %-*s%3.0f s left%s", "SWITCH", "PORT", "IN Mb/s", "OUT Mb/s", "DROPS/s", barWidth-8, "OUT", left.Seconds(), end)
	last := ""
	for _, p := range ports {
		name := p.Switch
		if name == last {
			name = ""
		}
		last = p.Switch
		full := rate
		if p.Wire == "" {
			full = hostRate
		}
		drops := fmt.Sprintf("%9.0f", p.DropsPerSecond)
		if color && p.DropsPerSecond > 0 {
			drops = "\x1b[33m" + drops + "\x1b[0m"
		}
		fmt.Fprintf(&b, "%-8s %-8s %10.1f %10.1f %s  %s%s", name, p.Name, p.RxBitsPerSecond/1e6, p.TxBitsPerSecond/1e6, drops, bar(p.TxBitsPerSecond, float64(full)), end)
	}
	io.WriteString(w, b.String())
	return len(ports) + 1
}

// bar draws a share of the link's rate.
func bar(v, full float64) string {
	n := 0
	if full > 0 {
		n = min(barWidth, int(v/full*barWidth+0.5))
	}
	return "|" + strings.Repeat("#", n) + strings.Repeat(" ", barWidth-n) + "|"
}

// summary is a line for where there is no terminal.
func summary(ports []*api.Port, left time.Duration) string {
	var in, out, frames, drops float64
	for _, p := range ports {
		drops += p.DropsPerSecond
		if p.Wire == "" {
			in += p.RxBitsPerSecond
			out += p.TxBitsPerSecond
			frames += p.RxFramesPerSecond
		}
	}
	return fmt.Sprintf("hosts send %5.0f Mb/s, receive %5.0f Mb/s; %.0f kframes/s; %.0f drops/s; %.0f s left", in/1e6, out/1e6, frames/1e3, drops, left.Seconds())
}
