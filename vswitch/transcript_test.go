package vswitch_test

import (
	"fmt"
	roccpoint "gswitch/rocc/point"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gswitch/buffer"
	"gswitch/config"
	escapepoint "gswitch/escape/point"
	"gswitch/frame"
	"gswitch/notice"
	"gswitch/rocc"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Transcripts are stories of a switch: frames, instants and commands, and what it
// answered. CONTRIBUTING.md says how to read and write one; -rewrite writes
// the answers anew.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := &transcript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			if err := s.do(t, d); err != nil {
				return "error: " + err.Error() + "\n"
			}
			s.flush()
			return s.out.String()
		})
		if s.device != nil {
			s.t = t
			for _, n := range s.sw.Nodes {
				n.TapDrops(nil)
			}
			s.close(len(s.names))
		}
	})
}

type transcript struct {
	*device
	names []string // of the ports
	tap   []frame.Ref
	out   strings.Builder
	// The line that is repeated at present.
	line        string
	first, last frame.Time
	times       int
}

func (s *transcript) do(t *testing.T, d *datadriven.TestData) error {
	if s.device != nil {
		s.t = t
	}
	arg := func(i int) string {
		if i < len(d.CmdArgs) {
			return d.CmdArgs[i].Key
		}
		return ""
	}
	switch d.Cmd {
	case "switch", "apply":
		return s.configure(t, d.Cmd == "apply", d.Input)
	case "link":
		port, err := s.port(arg(0))
		if err != nil {
			return err
		}
		s.link(port, arg(1) == "up")
		s.runAll()
		s.drops()
		return nil
	case "receive":
		return s.receives(arg(0), d.Input)
	case "run":
		by, err := time.ParseDuration(arg(0))
		s.run(frame.Time(by))
		return err
	case "show":
		return s.show(arg(0))
	}
	return fmt.Errorf("there is no command %q: switch, apply, link, receive, run, show", d.Cmd)
}

// configure takes what stands under a switch in a document.
func (s *transcript) configure(t *testing.T, again bool, section string) error {
	doc := "version: 1\nswitches:\n  - name: s\n    mac: " + deviceMAC.String() + "\n    seed: 1\n    " + strings.ReplaceAll(section, "\n", "\n    ") + "\n"
	c, err := config.Parse("switch", []byte(doc))
	if err != nil {
		return err
	}
	cfg := c.Resolved().Switches[0].VSwitch(nil)
	for i := range cfg.Ports {
		cfg.Ports[i].Scheduler.Burst = 0 // no caller is late here
	}
	if again {
		s.apply(cfg)
		s.drops()
		return nil
	}
	s.device = newDevice(t, cfg, 1, 4096)
	s.names = nil
	for i := range cfg.Ports {
		s.names = append(s.names, cfg.Ports[i].Name)
	}
	s.tap = make([]frame.Ref, 1024)
	s.sw.Nodes[0].TapDrops(s.tap)
	return nil
}

func (s *transcript) port(name string) (uint16, error) {
	for i, n := range s.names {
		if n == name {
			return uint16(i), nil
		}
	}
	return 0, fmt.Errorf("there is no port %q", name)
}

// receives hands over frames, "20 x" of one if it says so.
func (s *transcript) receives(name, lines string) error {
	port, err := s.port(name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(lines) {
		line, times := strings.TrimSpace(line), 1
		if n, rest, ok := strings.Cut(line, " x "); ok {
			if _, err := fmt.Sscan(n, &times); err != nil {
				return fmt.Errorf("%q is not: N x a frame", line)
			}
			line = rest
		}
		b, err := wt.Read(line, map[string]wire.MAC{"switch": deviceMAC})
		if err != nil {
			return err
		}
		for range times {
			s.receive(port, b)
			s.drops()
		}
	}
	return nil
}

// run lets time pass from event to event, and says what leaves.
func (s *transcript) run(by frame.Time) {
	n := s.sw.Nodes[0]
	for end, still := s.now+by, 0; ; still++ {
		if still > 1000 {
			s.t.Fatalf("time stands still at %v", s.now)
		}
		for p := range s.names {
			s.transmit(uint16(p), func(m *frame.Meta, b []byte) {
				s.say(max(m.Depart, s.now), s.names[p]+" sends "+words(b))
			})
		}
		s.drops()
		at := n.Wake(s.now)
		if at > end {
			s.now = end
			return
		}
		if at > s.now {
			still = 0
		}
		s.advance(max(at-s.now, 0))
	}
}

func (s *transcript) drops() {
	n := s.sw.Nodes[0]
	for _, r := range n.TakeDrops() {
		if m := s.arena.Meta(r); m.Reason.Loss() {
			from := "itself"
			if int(m.InPort) < len(s.names) {
				from = s.names[m.InPort]
			}
			s.say(s.now, fmt.Sprintf("dropped, %v, from %s: %s", m.Reason, from, words(s.arena.Bytes(r))))
		}
		s.pools[0].Free(r)
	}
	n.TapDrops(s.tap)
}

// say adds a line, or counts it if it is the same as before.
func (s *transcript) say(at frame.Time, line string) {
	if line != s.line {
		s.flush()
		s.line, s.first = line, at
	}
	s.last = at
	s.times++
}

func (s *transcript) flush() {
	at := instant(s.first)
	if s.last > s.first {
		at += " to " + instant(s.last)
	}
	switch {
	case s.times == 1:
		fmt.Fprintf(&s.out, "%s %s\n", at, s.line)
	case s.times > 1:
		fmt.Fprintf(&s.out, "%s, %d x: %s\n", at, s.times, s.line)
	}
	s.line, s.times = "", 0
}

// instant is since the transcript began.
func instant(t frame.Time) string { return fmt.Sprintf("%.3fus", float64(t-frame.Second)/1000) }

// words says what a frame is, with what rooms above package wire know of it.
func words(b []byte) string {
	w := wt.Words(b, len(b))
	if m, why := wt.Parse(b); why == frame.Keep && m.Flags&frame.HasICMP != 0 && wire.ICMP(b[m.L4:]).Type() == notice.Type4 {
		var n rocc.Notice
		if quote, err := n.Decode(b[m.L4:], notice.Type4); err == nil {
			to, _, _ := strings.Cut(w, ", ICMP")
			w = fmt.Sprintf("%s, RoCC: queue %d has %d bytes, fair rate %.2f Gb/s for qp %d", to, n.Class, n.Queue, float64(n.Fair)*float64(n.Unit)/1e9, wire.BTH(quote[28:]).DestQP())
		}
	}
	return strings.ReplaceAll(w, deviceMAC.String(), "switch")
}

// show says what the switch says of itself.
func (s *transcript) show(what string) error {
	n := s.sw.Nodes[0]
	switch what {
	case "queues":
		for p, name := range s.names {
			for q := range 8 {
				if k, bytes := n.Scheduler(uint16(p)).QueueLen(q); k > 0 {
					fmt.Fprintf(&s.out, "%s queue %d: %d frames, %d bytes\n", name, q, k, bytes)
				}
			}
		}
	case "pauses":
		for p, name := range s.names {
			f := n.PFC(uint16(p))
			for c := range 8 {
				k := f.Class(c)
				if f.Paused(s.now)>>c&1 != 0 {
					fmt.Fprintf(&s.out, "%s may not send class %d until %s\n", name, c, instant(f.Until(c)))
				}
				if f.Storms()>>c&1 != 0 {
					fmt.Fprintf(&s.out, "%s is in a storm of class %d\n", name, c)
				}
				if k.XOFFSent {
					fmt.Fprintf(&s.out, "%s has asked its neighbour to pause class %d since %s\n", name, c, instant(k.XOFFSince))
				}
			}
		}
	case "buffer":
		var b buffer.Snapshot
		n.Buffer(&b, false)
		for p, port := range b.Ports {
			for c, g := range port.Groups {
				if g.Reserved+g.Shared+g.Headroom > 0 {
					fmt.Fprintf(&s.out, "from %s, class %d: %d bytes shared, %d of %d in the headroom\n", s.names[p], c, g.Reserved+g.Shared, g.Headroom, g.HeadroomSize)
				}
			}
		}
		fmt.Fprintf(&s.out, "%d bytes held\n", b.Held)
	case "rocc":
		for _, v := range roccpoint.Views(n, nil) {
			fmt.Fprintf(&s.out, "%s queue %d: fair rate %.2f Gb/s, %d flows, %d bytes, %d updates, %d notices\n", s.names[v.Port], v.Queue, float64(v.Fair)/1e9, v.Flows, v.QueueBytes, v.Updates, v.Notices)
		}
	case "escape":
		for _, v := range escapepoint.Views(n, nil) {
			fmt.Fprintf(&s.out, "%s: places %d free, %d kept, %d taken, %d parked; tokens %d made, %d passed on, %d hit, %d ended, %d reclaimed; %d frames arrived\n",
				s.names[v.Port], v.Free, v.Kept, v.Taken, v.Parked, v.Made, v.Forwarded, v.Hits, v.Dropped, v.Reclaimed, v.Arrived)
		}
	case "neighbors":
		for _, v := range n.Neighbors() {
			fmt.Fprintf(&s.out, "%v on %s: %s, %d frames wait\n", v.Addr, v.Interface, v.State, v.Pending)
		}
	case "drops":
		for p, name := range s.names {
			var c vswitch.PortCounts
			n.ReadPort(uint16(p), &c)
			for why, k := range c.Drops {
				if k > 0 {
					fmt.Fprintf(&s.out, "from %s, %v: %d\n", name, frame.Reason(why), k)
				}
			}
		}
	default:
		return fmt.Errorf("show what? queues, pauses, buffer, rocc, escape, neighbors, drops")
	}
	if s.out.Len() == 0 {
		s.out.WriteString("nothing\n")
	}
	return nil
}
