package run

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/fabric/live"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// stub starts processes that are functions here.
func stub(f func(p *pipe) error) func(name string) (*Process, error) {
	return func(string) (*Process, error) {
		ours, theirs := net.Pipe()
		how := make(chan error, 1)
		go func() {
			err := f(newPipe(theirs))
			theirs.Close()
			how <- err
		}()
		return &Process{Conn: ours, PID: 7, Kill: func() { theirs.Close() }, Wait: func() error { return <-how }}, nil
	}
}

// The error of a process that ended too early has its name, with what it
// said, and the others do not wait for it.
func TestProcessLost(t *testing.T) {
	var s setup
	for _, k := range []struct {
		name string
		f    func(p *pipe) error
		want string
	}{
		{"ends", func(p *pipe) error { p.read(&s); return errors.New("exit status 2, and said: out of memory") }, "process h1 (7): exit status 2, and said: out of memory"},
		{"ends well", func(p *pipe) error { p.read(&s); return nil }, "process h1 (7): it ended"},
		{"gives up", func(p *pipe) error {
			p.read(&s)
			p.send(&report{Error: "port down"})
			return p.read(&s)
		}, "process h1 (7): port down"},
	} {
		g, err := startAll([]live.Process{{Name: "h1"}}, stub(k.f), func(*live.Process) *setup { return &setup{} })
		if err == nil {
			err = g.ready(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", k.name, err, k.want)
		}
		g.stop()
	}
}

// Processes that are ready begin at one instant, and end when they are stopped.
func TestProcesses(t *testing.T) {
	begun := make(chan int64, 2)
	g, err := startAll([]live.Process{{Name: "h1"}, {Name: "h2"}}, stub(func(p *pipe) error {
		var s setup
		var o order
		if err := errors.Join(p.read(&s), p.send(&report{Ready: true}), p.read(&o)); err != nil {
			return err
		}
		begun <- o.Begin
		return p.read(&o)
	}), func(v *live.Process) *setup { return &setup{Name: v.Name} })
	if err != nil {
		t.Fatal(err)
	}
	if err := g.ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	before, err := monotonic()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.begin(); err != nil {
		t.Fatal(err)
	}
	if a, b := <-begun, <-begun; a != b || a <= before {
		t.Errorf("time begins at %d and at %d, and it was %d", a, b, before)
	}
	if g.unreported() != "h1, h2" {
		t.Errorf("%q have no summary", g.unreported())
	}
	g.stop()
	for _, h := range g.processes {
		if h.how == nil {
			t.Errorf("%s went on reading", h.name)
		}
	}
}

// A process is of the same program, has a network like the others, and says what
// is wrong with it.
func TestNodeRefuses(t *testing.T) {
	s := load(t, pairs, scenario.Options{})
	document, err := s.Runs[0].Alone()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		s    setup
		want string
	}{
		{setup{Version: "2"}, `version "1" is to step nodes for version "2"`},
		{setup{Version: "1", File: "t.yaml", Document: []byte("version: 7")}, "t.yaml:1"},
		{setup{Version: "1", File: "t.yaml", Document: document, Seed: 1, Own: []bool{true}, Ends: [][]wireEnd{nil}}, "a network of 4 nodes is not the one of 1"},
		{setup{Version: "1", File: "t.yaml", Document: document, Seed: 1, Own: make([]bool, 4), Ends: make([][]wireEnd, 4)}, "and interfaces for 0 are given"},
	} {
		ours, theirs := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- Node(theirs, "1", func() {}) }()
		p := newPipe(ours)
		var n report
		if err := errors.Join(p.send(&k.s), p.read(&n)); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || !strings.Contains(n.Error, k.want) || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%q, and %v; want %q", n.Error, err, k.want)
		}
		ours.Close()
	}
}

// A director rejects reports of what does not exist.
func TestDirectorRefuses(t *testing.T) {
	d := &director{conns: map[vnet.Conn]*spread{3: {}}, way: map[uint64]*underWay{}}
	for _, h := range []event{{What: arrived, Serial: 1}, {What: arrived, Serial: 3}, {What: sent, Serial: 3, ID: 9}, {What: sent + 1, Serial: 3}} {
		if err := d.handle(&h); err == nil {
			t.Errorf("%+v is believed", h)
		}
	}
}

// Orders to a process that is no more fail with how it ended, once; what is got
// after that goes nowhere.
func TestDirectorAfterLoss(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours := os.NewFile(uintptr(pair[0]), "socket")
	defer ours.Close()
	if err := unix.Close(pair[1]); err != nil {
		t.Fatal(err)
	}
	h := &process{name: "h1", started: &Process{PID: 7}, pipe: newPipe(ours), ended: make(chan struct{}), how: errors.New("signal: killed")}
	close(h.ended)
	d := &director{group: &group{processes: []*process{h}}}
	for range 1 << 16 { // more than what is buffered
		d.send(0, order{Post: &posting{Serial: 1, Bytes: 1 << 40, ID: 1 << 50}})
	}
	if d.err == nil || d.err.Error() != "process h1 (7): signal: killed" {
		t.Errorf("%v", d.err)
	}
}

// An instant is the same to every process, whatever its time.Time counts from.
func TestInstant(t *testing.T) {
	at, err := monotonic()
	if err != nil {
		t.Fatal(err)
	}
	a, err := instant(at)
	if err != nil {
		t.Fatal(err)
	}
	b, err := instant(at + int64(frame.Second))
	if err != nil {
		t.Fatal(err)
	}
	// Between two looks at clocks a machine may do something else, though hardly
	// in all of 32 tries.
	if d := frame.Time(b.Sub(a)); d < frame.Second-frame.Millisecond || d > frame.Second+frame.Millisecond {
		t.Errorf("a second lasts %v", d.Duration())
	}
}
