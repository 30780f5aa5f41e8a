package gfabric

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gswitch/control"
	"gswitch/control/host"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/table"
	"gswitch/wire"
)

// minimiser looks for the fewest inputs of a record that still show an event.
type minimiser struct {
	flags *replayFlags
	name  string
	until *condition
	err   io.Writer

	start    frame.Time
	event    frame.Time // at which it comes with all inputs
	names    map[uint16]string
	inputs   []input
	of       [replay.InputKinds][]int32 // input of each thing that was given, by its number
	tried    int                        // replays
	reported time.Time
	flows    map[flowKey]int32
	parser   *wire.Parser
	singled  []bool // by input of the first round: its frames are inputs of their own
}

// input is what is kept or left out as one.
type input struct {
	Kind     string  `json:"kind"`
	What     string  `json:"what"`
	Port     string  `json:"port,omitempty"`
	At       float64 `json:"at_seconds"`
	Last     float64 `json:"last_seconds"`
	Count    uint64  `json:"count"` // frames, allocations or checks
	at, last frame.Time
}

// flowKey says what becomes one input from the next.
type flowKey struct {
	kind replay.InputKind
	port uint16
	what string
}

// minimised is the result, as --json prints it.
type minimised struct {
	Event   string  `json:"event"`
	At      float64 `json:"at_seconds"`
	Given   int     `json:"given"` // inputs up to the event, of which Needed are left
	Frames  int     `json:"frames"`
	Replays int     `json:"replays"`
	Least   bool    `json:"least"` // none of Needed can be left out; false: it was interrupted
	Needed  []input `json:"needed"`
}

// minimised prints the fewest inputs with which the event of --until still comes.
func (f *replayFlags) minimised(ctx context.Context, name string, until *condition, stdout, stderr io.Writer) error {
	m := &minimiser{flags: f, name: name, until: until, err: stderr, reported: time.Now()}
	if err := m.gather(ctx); err != nil {
		return err
	}
	out := minimised{Event: f.until, At: (m.event - m.start).Duration().Seconds(), Given: len(m.inputs), Frames: len(m.of[replay.FrameInput])}
	kept, err := m.reduce(ctx)
	if err == nil && f.frames {
		m.single(kept)
		if err = m.gather(ctx); err == nil {
			kept, err = m.reduce(ctx)
		}
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	out.Replays, out.Least, out.Needed = m.tried, err == nil, []input{}
	for _, i := range kept {
		x := m.inputs[i]
		x.At, x.Last = (x.at - m.start).Duration().Seconds(), (x.last - m.start).Duration().Seconds()
		out.Needed = append(out.Needed, x)
	}
	slices.SortStableFunc(out.Needed, func(a, b input) int { return cmp.Compare(a.at, b.at) })
	if f.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return errors.Join(e.Encode(&out), err)
	}
	return errors.Join(out.print(stdout, m), err)
}

func (o *minimised) print(w io.Writer, m *minimiser) error {
	least := "these are enough, and none of them can be left out"
	if !o.Least {
		least = "these are enough; interrupted, so fewer may be"
	}
	fmt.Fprintf(w, "%s comes at %v, %d inputs (%d frames among them) after the beginning;\n%s:\n", o.Event, (m.event - m.start).Duration(), o.Given, o.Frames, least)
	if len(o.Needed) == 0 {
		_, err := fmt.Fprintln(w, "none: it comes with no input at all")
		return err
	}
	t := table.New("AT", "UNTIL", "PORT", "INPUT", ">COUNT")
	for _, x := range o.Needed {
		t.Row((x.at - m.start).Duration(), (x.last - m.start).Duration(), cmp.Or(x.Port, "-"), x.What, x.Count)
	}
	t.Print(w)
	_, err := fmt.Fprintf(w, "%d replays\n", o.Replays)
	return err
}

// open begins a replay in which keep says what is given.
func (m *minimiser) open(keep func(p *replay.Player, in *replay.Input) bool) (*replayed, io.Closer, error) {
	file, in, err := m.flags.open(m.name)
	if err != nil {
		return nil, nil, err
	}
	p, err := m.flags.player(in)
	if err == nil {
		err = m.until.fits(p.Header.Kind)
	}
	var sw fixable
	if err == nil {
		sw = p.Node.(fixable)
		err = p.Free(sw.Rated())
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", m.name, err), file.Close())
	}
	p.Keep = func(in *replay.Input) bool { return keep(p, in) }
	l, err := newLookout(&replayFlags{}, m.until, io.Discard)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return newReplayed(l, p), file, nil
}

// shows replays a record with some of its inputs, up to an instant, and reports whether
// the event comes, and when.
func (m *minimiser) shows(ctx context.Context, end frame.Time, keep func(p *replay.Player, in *replay.Input) bool) (bool, frame.Time, error) {
	r, file, err := m.open(keep)
	if err != nil {
		return false, 0, err
	}
	defer file.Close()
	m.start, m.names = r.p.Header.Start, r.sw.Ports()
	if m.flags.to >= 0 {
		end = min(end, addTime(m.start, frame.Time(m.flags.to)))
	}
	m.tried++
	if err := r.play(ctx, end); !replay.Ended(err) {
		return false, 0, err
	}
	return r.stopped, r.p.Now(), nil
}

// gather finds out what the node was given up to the event.
func (m *minimiser) gather(ctx context.Context) error {
	m.inputs, m.flows, m.parser = nil, map[flowKey]int32{}, wire.NewParser(wire.NewHasher(0, false))
	was := m.of
	m.of = [replay.InputKinds][]int32{}
	end := frame.Never
	if m.singled != nil {
		end = m.event
	}
	shown, at, err := m.shows(ctx, end, func(p *replay.Player, in *replay.Input) bool {
		single := false
		if m.singled != nil { // the second round: of what the first one kept
			old := was[in.Kind]
			if in.Number >= uint64(len(old)) || old[in.Number] < 0 || !m.singled[old[in.Number]] {
				m.of[in.Kind] = append(m.of[in.Kind], -1)
				return false
			}
			single = true
		}
		m.of[in.Kind] = append(m.of[in.Kind], m.take(p, in, single))
		return true
	})
	if err != nil {
		return err
	}
	if !shown {
		return fmt.Errorf("%s: %s does not come when the record is replayed freely, with all of its inputs", m.name, m.flags.until)
	}
	m.event = at
	return nil
}

// single makes the frames of what is kept inputs of their own.
func (m *minimiser) single(kept []int) {
	m.singled = make([]bool, len(m.inputs))
	for _, i := range kept {
		m.singled[i] = true
	}
}

// take returns the input that something is a part of.
func (m *minimiser) take(p *replay.Player, in *replay.Input, single bool) int32 {
	x := input{Kind: inputKinds[in.Kind], Port: m.names[in.Port], Count: max(1, in.Count), at: in.At, last: in.At}
	switch in.Kind {
	case replay.LinkInput:
		x.What = "link down"
		if in.Up {
			x.What = "link up"
		}
	case replay.CommandInput:
		x.Port, x.What = "", commandName(p, in.Command)
	case replay.MissInput:
		x.Port, x.What = "", "allocations that fail"
	case replay.CheckInput:
		x.Port, x.What = "", "payload that is damaged"
	default:
		x.What = m.flow(p, in)
		if in.Kind == replay.MarkInput {
			x.What = "congestion mark, " + x.What
		}
		if single {
			break
		}
		key := flowKey{in.Kind, in.Port, x.What}
		if i, known := m.flows[key]; known {
			m.inputs[i].Count++
			m.inputs[i].last = in.At
			return i
		}
		m.flows[key] = int32(len(m.inputs))
	}
	m.inputs = append(m.inputs, x)
	return int32(len(m.inputs) - 1)
}

var inputKinds = [replay.InputKinds]string{"frame", "mark", "link", "command", "allocation", "check"}

// flow names what a frame belongs to.
func (m *minimiser) flow(p *replay.Player, in *replay.Input) string {
	m.parser.Parse(p.Arena, []frame.Ref{in.Frame})
	meta, b := p.Arena.Meta(in.Frame), p.Arena.Bytes(in.Frame)
	if src, dst := addressesOf(p.Arena, in.Frame); src.IsValid() {
		proto := fmt.Sprintf("protocol %d", meta.Proto)
		switch meta.Proto {
		case wire.ProtoTCP:
			proto = "TCP"
		case wire.ProtoUDP:
			proto = "UDP"
		case wire.ProtoICMP, wire.ProtoICMPv6:
			return fmt.Sprintf("%v > %v ICMP", src.Addr(), dst.Addr())
		}
		return fmt.Sprintf("%v > %v %s", src, dst, proto)
	}
	if len(b) < wire.EthernetLen {
		return "frames without a header"
	}
	et := uint16(b[12])<<8 | uint16(b[13])
	if et == wire.EtherTypeMACControl {
		return "pause frames"
	}
	return fmt.Sprintf("%v > %v ethertype %#04x", wire.MAC(b[6:12]), wire.MAC(b[:6]), et)
}

// commandName says what a command is.
func commandName(p *replay.Player, b []byte) string {
	if x, ok := p.Node.(*runHost); ok {
		return x.CommandName(b)
	}
	if p.Header.Kind == "host" {
		return "command " + host.CommandName(b)
	}
	return "command " + control.CommandName(b)
}

// reduce returns the fewest inputs with which the event comes.
func (m *minimiser) reduce(ctx context.Context) ([]int, error) {
	keep := make([]bool, len(m.inputs))
	return replay.Minimise(len(m.inputs), func(kept []int) (bool, error) {
		clear(keep)
		for _, i := range kept {
			keep[i] = true
		}
		shown, _, err := m.shows(ctx, m.event, func(_ *replay.Player, in *replay.Input) bool {
			of := m.of[in.Kind]
			return in.Number < uint64(len(of)) && of[in.Number] >= 0 && keep[of[in.Number]]
		})
		if time.Since(m.reported) > time.Second {
			m.reported = time.Now()
			fmt.Fprintf(m.err, "%d replays; %d of %d inputs are tried\n", m.tried, len(kept), len(m.inputs))
		}
		return shown, err
	})
}
