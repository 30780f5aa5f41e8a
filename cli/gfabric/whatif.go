package gfabric

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/control/host"
	"gswitch/fabric/scenario"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/replay"
	"gswitch/section"
	"gswitch/table"
	"gswitch/wholefile"
)

// compare replays a record as it was and with another configuration, and says what
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
	d := was.against(would)
	if !f.json {
		d.print(w)
		return nil
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// fixable is what a record is of that can be replayed freely.
type fixable interface {
	replayable
	replay.Machine
	// Rated returns the ports that pace what they send.
	Rated() []uint16
}

// otherwise makes what a record is of with the configuration of --what-if or --set.
func (f *replayFlags) otherwise(in *replay.Reader) (*replay.Player, error) {
	if ofRun(in.Header.Kind) {
		return replay.NewPlayer(in, func(h *replay.Header, pool *frame.Pool) (replay.Machine, error) {
			s, err := newRunNode(h, f.set, pool)
			if err != nil {
				return nil, cli.Input(err)
			}
			return s, nil
		})
	}
	p, err := f.player(in)
	if err != nil {
		return nil, err
	}
	return p, f.fix(p.Node.(fixable), &in.Header)
}

// fix gives a switch or a host the configuration of --what-if or --set.
func (f *replayFlags) fix(x fixable, h *replay.Header) error {
	text, file, err := f.document(h)
	if err != nil {
		return cli.Input(err)
	}
	if of, ok := x.(*host.Replayed); ok {
		doc, err := config.ParseHosts(file, text)
		if err != nil {
			return cli.Input(err)
		}
		return of.Fix(doc)
	}
	doc, err := config.ParseBeside(file, text)
	if err == nil {
		err = control.Check(doc)
	}
	if err != nil {
		return cli.Input(err)
	}
	if err := x.(*control.Replayed).Fix(doc); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// document is what the node is to be configured by: the file of --what-if, or the document
// with which the record begins and the settings of --set.
func (f *replayFlags) document(h *replay.Header) (text []byte, file string, err error) {
	if f.whatIf != "" {
		if text, err = wholefile.Read(f.whatIf, section.MaxDocument); err != nil {
			err = fmt.Errorf("cannot read the configuration: %w", err)
		}
		return text, f.whatIf, err
	}
	file, prefix := "the record's configuration", "hosts[0]."
	if h.Kind == "switch" {
		doc, err := config.Parse(file, []byte(h.Document))
		if err != nil {
			return nil, file, err
		}
		at := slices.IndexFunc(doc.Switches, func(s config.Switch) bool { return s.Name == h.Name })
		prefix = fmt.Sprintf("switches[%d].", at)
	}
	var set []string
	for _, s := range f.set {
		set = append(set, prefix+s)
	}
	text, err = scenario.SetIn(file, []byte(h.Document), set)
	return text, file, err
}

// outcome is what a switch or a host did with what it was given.
type outcome struct {
	start frame.Time
	took  frame.Time
	names map[uint16]string
	ports map[uint16]*portOutcome
	drops map[dropped]int

	timeouts, retransmissions uint64 // of a host

	refused int    // commands that failed
	first   error  // why the first did
	lost    string // why the record has nothing from here on
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

// departure is what distinguishes one frame from the next.
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
	made := f.player
	if other {
		made = f.otherwise
	}
	p, err := made(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	sw := p.Node.(fixable)
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
	l, err := newLookout(&replayFlags{}, nil, io.Discard)
	if err != nil {
		return nil, err
	}
	r := newReplayed(l, p)
	err = r.play(ctx, addTime(p.Header.Start, end))
	if o.took = p.Now() - p.Header.Start; !replay.Ended(err) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if lost := (replay.LostError{}); errors.As(err, &lost) {
		o.lost = lost.Why
	}
	if x, ok := sw.(interface{ Refusals() (int, error) }); ok {
		o.refused, o.first = x.Refusals()
	}
	if h, ok := sw.(hostLike); ok {
		o.timeouts, o.retransmissions = repairs(h.NIC())
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

// difference is what would have been different, as --json prints it.
type difference struct {
	Replayed float64   `json:"replayed_seconds"`
	First    float64   `json:"first_seconds"` // when a frame would have left otherwise; -1: none would
	Rows     []changed `json:"different"`
	Refused  int       `json:"commands_refused,omitempty"` // that its own settings let it carry out
	Why      string    `json:"refused_because,omitempty"`  // of the first of them
	Lost     string    `json:"lost,omitempty"`             // why the record ends early

	took, first frame.Time
}

// changed is a value that would have been another.
type changed struct {
	Port  string `json:"port"` // -: of the whole node
	What  string `json:"what"`
	Was   any    `json:"was"` // times in nanoseconds
	Would any    `json:"would_be"`
}

// against returns what is different in another outcome.
func (o *outcome) against(would *outcome) *difference {
	d := &difference{Replayed: o.took.Duration().Seconds(), First: -1, Rows: []changed{}, took: o.took, first: frame.Never}
	of := func(port, what string, a, b any) {
		if a != b {
			d.Rows = append(d.Rows, changed{port, what, a, b})
		}
	}
	row := func(port uint16, what string, a, b any) { of(cmp.Or(o.names[port], "-"), what, a, b) }
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
		d.first = min(d.first, differ(a.sent, b.sent))
	}
	of("-", "retransmissions", o.retransmissions, would.retransmissions)
	of("-", "timeouts", o.timeouts, would.timeouts)
	all := maps.Clone(o.drops)
	maps.Copy(all, would.drops)
	for _, at := range slices.SortedFunc(maps.Keys(all), func(x, y dropped) int { return cmp.Or(cmp.Compare(x.port, y.port), cmp.Compare(x.reason, y.reason)) }) {
		row(at.port, "drops of what came in, "+at.reason.String(), o.drops[at], would.drops[at])
	}
	if d.Refused, d.Lost = max(would.refused-o.refused, 0), o.lost; d.Refused > 0 {
		d.Why = would.first.Error()
	}
	if d.first != frame.Never {
		d.first -= o.start
		d.First = d.first.Duration().Seconds()
	}
	return d
}

// print says what would have been different.
func (d *difference) print(w io.Writer) {
	took := d.took.Duration().Round(time.Microsecond)
	if d.Lost != "" {
		fmt.Fprintf(w, "the record ends early: %s\n", d.Lost)
	}
	if d.Refused > 0 {
		fmt.Fprintf(w, "%d commands would have been refused, the first: %s\n", d.Refused, d.Why)
	}
	if len(d.Rows) == 0 && d.first == frame.Never {
		fmt.Fprintf(w, "in %v nothing would have been different\n", took)
		return
	}
	t := table.New("PORT", "WHAT", ">WAS", ">WOULD BE")
	for _, r := range d.Rows {
		t.Row(r.Port, r.What, r.Was, r.Would)
	}
	t.Print(w)
	if d.first == frame.Never {
		fmt.Fprintf(w, "in %v; all frames would have left as they did\n", took)
		return
	}
	fmt.Fprintf(w, "in %v; the first frame that would have left otherwise is that of %v\n", took, d.first.Duration())
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
