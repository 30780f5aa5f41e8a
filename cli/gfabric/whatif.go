package gfabric

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/control/host"
	runner "gswitch/fabric/run"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/hostnic"
	"gswitch/replay"
)

// compare replays a record as it was and with another configuration, and tells what
// is different.
func (f *replayFlags) compare(ctx context.Context, name string, end frame.Time, w io.Writer) error {
	was, err := f.freely(ctx, name, end, false)
	if err != nil {
		return err
	}
	would, err := f.freely(ctx, name, end, true)
	if err != nil {
		return err
	}
	was.print(w, would)
	return nil
}

// fixable is what a record is of that can be replayed freely.
type fixable interface {
	replayable
	// Rated returns the ports that pace what they send.
	Rated() []uint16
}

// fix gives a switch or a host the configuration of --what-if.
func (f *replayFlags) fix(x fixable) error {
	if h, ok := x.(*host.Replayed); ok {
		doc, err := config.LoadHosts(f.whatIf)
		if err != nil {
			return cli.Input(err)
		}
		return h.Fix(doc)
	}
	doc, err := config.Load(f.whatIf)
	if err == nil {
		err = control.Check(doc)
	}
	if err != nil {
		return cli.Input(err)
	}
	if err := x.(*control.Replayed).Fix(doc); err != nil {
		return fmt.Errorf("%s: %w", f.whatIf, err)
	}
	return nil
}

// outcome is what a switch or a host did with what it was given.
type outcome struct {
	start frame.Time
	took  frame.Time
	names map[uint16]string
	ports map[uint16]*portOutcome
	drops map[dropped]int
	host  hostnic.Counts // of a host
}

type dropped struct {
	port   uint16
	reason frame.Reason
}

// portOutcome is what left by a port.
type portOutcome struct {
	frames, bytes, marked uint64
	waited                histogram.Buckets
	longest               frame.Time
	sent                  []departure
}

// departure is what tells one frame from the next.
type departure struct {
	at   frame.Time
	hash uint64
}

// freely replays a record without comparing it, with the configuration of --what-if or
// its own.
func (f *replayFlags) freely(ctx context.Context, name string, end frame.Time, other bool) (*outcome, error) {
	file, in, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if in.Header.Kind == runner.RecordKind {
		return nil, inputf("%s is of a whole run: --what-if is for records of one switch or host; gfabric run --set runs it with other settings", name)
	}
	p, err := player(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	sw := p.Node.(fixable)
	if other {
		if err := f.fix(sw); err != nil {
			return nil, err
		}
	}
	if err := p.Free(sw.Rated()); err != nil {
		return nil, err
	}
	o := &outcome{start: p.Header.Start, names: sw.Ports(), ports: map[uint16]*portOutcome{}, drops: map[dropped]int{}}
	p.Left = func(_ frame.Time, port uint16, v []frame.Ref) { o.left(p, port, v) }
	p.Dropped = func(_ frame.Time, v []frame.Ref) {
		for _, r := range v {
			if m := p.Arena.Meta(r); m.Reason.Loss() {
				o.drops[dropped{m.InPort, m.Reason}]++
			}
		}
	}
	r := &replayed{flags: f, p: p, sw: sw}
	err = r.play(ctx, addTime(p.Header.Start, end))
	if o.took = p.Now() - p.Header.Start; !replay.Ended(err) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if h, ok := sw.(*host.Replayed); ok {
		o.host = *h.NIC().Counts()
	}
	return o, nil
}

func (o *outcome) left(p *replay.Player, port uint16, v []frame.Ref) {
	x := o.ports[port]
	if x == nil {
		x = &portOutcome{}
		o.ports[port] = x
	}
	for _, r := range v {
		m := p.Arena.Meta(r)
		x.frames, x.bytes = x.frames+1, x.bytes+uint64(m.Wire)
		if m.Flags&frame.IsCE != 0 {
			x.marked++
		}
		x.waited.Observe(m.Depart - m.Arrival)
		x.longest = max(x.longest, m.Depart-m.Arrival)
		x.sent = append(x.sent, departure{m.Depart, uint64(m.Hash)<<32 | uint64(m.Wire)})
	}
}

// print tells what would have been different.
func (o *outcome) print(w io.Writer, would *outcome) {
	t := cli.NewTable("PORT", "WHAT", ">WAS", ">WOULD BE")
	rows := 0
	row := func(port uint16, what string, a, b any) {
		if a != b {
			t.Row(cmp.Or(o.names[port], "-"), what, a, b)
			rows++
		}
	}
	first := frame.Never
	for _, port := range slices.Sorted(maps.Keys(o.names)) {
		a, b := o.ports[port], would.ports[port]
		if a == nil {
			a = &portOutcome{}
		}
		if b == nil {
			b = &portOutcome{}
		}
		row(port, "frames sent", a.frames, b.frames)
		row(port, "bytes sent", a.bytes, b.bytes)
		row(port, "congestion marks", a.marked, b.marked)
		row(port, "wait, median", short(a.waited.Quantile(0.5)), short(b.waited.Quantile(0.5)))
		row(port, "wait, 99 %", short(a.waited.Quantile(0.99)), short(b.waited.Quantile(0.99)))
		row(port, "wait, longest", short(a.longest), short(b.longest))
		first = min(first, differ(a.sent, b.sent))
	}
	row(0, "retransmissions", o.host.Retransmissions, would.host.Retransmissions)
	row(0, "timeouts", o.host.Timeouts, would.host.Timeouts)
	all := maps.Clone(o.drops)
	maps.Copy(all, would.drops)
	for _, d := range slices.SortedFunc(maps.Keys(all), func(x, y dropped) int { return cmp.Or(cmp.Compare(x.port, y.port), cmp.Compare(x.reason, y.reason)) }) {
		row(d.port, "drops of what came in, "+d.reason.String(), o.drops[d], would.drops[d])
	}
	took := o.took.Duration().Round(time.Microsecond)
	if rows == 0 && first == frame.Never {
		fmt.Fprintf(w, "in %v nothing would have been different\n", took)
		return
	}
	t.Print(w)
	fmt.Fprintf(w, "in %v; the first frame that would have left otherwise is that of %v\n", took, (first - o.start).Duration())
}

// differ returns the instant of the first frame of two sequences that is not the same.
func differ(a, b []departure) frame.Time {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return min(a[i].at, b[i].at)
		}
	}
	switch {
	case len(a) > len(b):
		return a[len(b)].at
	case len(b) > len(a):
		return b[len(a)].at
	}
	return frame.Never
}

func short(t frame.Time) time.Duration { return t.Duration().Round(10 * time.Nanosecond) }
