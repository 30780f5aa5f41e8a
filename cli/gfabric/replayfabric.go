package gfabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	runner "gswitch/fabric/run"
	"gswitch/frame"
	"gswitch/replay"
)

// records returns the files of a name: itself, or those of the directory that it is, of
// which --node chooses those of one node.
func (f *replayFlags) records(name string) ([]string, error) {
	if s, err := os.Stat(name); err != nil || !s.IsDir() {
		return []string{name}, nil // open says what is wrong
	}
	files, err := filepath.Glob(filepath.Join(name, "*.grec"))
	switch {
	case err != nil:
		return nil, err
	case len(files) == 0:
		return nil, inputf("%s holds no records (*.grec)", name)
	case len(files) == 1 || f.node == "" || !f.minimise && !f.other():
		return files, nil
	}
	var of, nodes []string
	for _, file := range files {
		c, in, err := f.open(file)
		if err != nil {
			return nil, err
		}
		c.Close()
		if in.Header.Name == f.node {
			of = append(of, file)
		}
		nodes = append(nodes, in.Header.Name)
	}
	switch {
	case len(of) == 0:
		return nil, usagef("--node %s: the records of %s are of %s", f.node, name, strings.Join(nodes, ", "))
	case len(of) > 1:
		return nil, usagef("--node %s has several records: name one of %s", f.node, strings.Join(of, ", "))
	}
	return of, nil
}

// network is the nodes of a fabric that are replayed side by side, each from its own
// record: the calls of all of them come in the order of their instants.
type network struct {
	nodes []*member
	zero  int64 // instant since which instants are counted, on the clock that all share
	came  *member
}

// member is a node of a fabric.
type member struct {
	*replayed
	file  string
	in    io.Closer
	shift int64 // clock that all share at instant zero of the node
	next  int64 // when its next call is
	ended error
	value float64
}

// several replays the records of several nodes.
func (f *replayFlags) several(ctx context.Context, names []string, until *condition, end frame.Time, words []string, stdout, stderr io.Writer) (err error) {
	l, err := newLookout(f, until, stdout)
	if err != nil {
		return err
	}
	l.wide = 16
	x := &network{}
	defer func() {
		for _, m := range x.nodes {
			m.in.Close()
		}
	}()
	if err := errors.Join(x.open(f, l, names)); err != nil {
		return err
	}
	if until != nil && until.node != "" && !slices.ContainsFunc(x.nodes, func(m *member) bool { return m.name == until.node }) {
		return usagef("--until %s: there is no record of %s", f.until, until.node)
	}
	if err := x.chosen(f.node); err != nil {
		return err
	}
	if len(words) > 0 && (until == nil || f.node != "") {
		if _, err := x.shown(f.node, words[0]); err != nil { // before it is replayed
			return err
		}
	}
	began := time.Now()
	err = errors.Join(x.play(ctx, end, until), l.close())
	if err != nil {
		return err
	}
	l.untraced(stderr)
	if until != nil && x.came == nil {
		return fmt.Errorf("%s: %s did not come up to the end", filepath.Dir(names[0]), f.until)
	}
	for _, m := range x.nodes {
		cut, _ := ending(m.file, m.ended) // play has reported errors
		m.verdict(stderr, began, cut)
	}
	if c := x.came; c != nil {
		fmt.Fprintf(stderr, "%s comes at %v, at %s\n", f.until, (c.p.Now() - c.zero).Duration(), c.name)
	}
	if len(words) == 0 {
		return nil
	}
	m, err := x.shown(f.node, words[0])
	if err != nil {
		return err
	}
	return m.show(ctx, words, stdout, stderr)
}

// chosen refuses a node that is none of them.
func (x *network) chosen(name string) error {
	var names []string
	for _, m := range x.nodes {
		if names = append(names, m.name); name == "" || name == m.name {
			return nil
		}
	}
	return usagef("--node %s: the records are of %s", name, strings.Join(names, ", "))
}

// open opens the records, and finds out what is earliest.
func (x *network) open(f *replayFlags, l *lookout, names []string) error {
	monotonic := true
	for _, name := range names {
		file, in, err := f.open(name)
		if err != nil {
			return err
		}
		m := &member{file: name, in: file}
		x.nodes = append(x.nodes, m)
		if in.Header.Kind == runner.RecordKind {
			return usagef("%s is of a whole run: replay it by its name", name)
		}
		p, err := f.player(in)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.replayed = newReplayed(l, p)
		m.name = in.Header.Name
		monotonic = monotonic && in.Header.Monotonic != 0
	}
	for i, m := range x.nodes {
		h := m.p.Header
		if m.shift = h.Epoch; monotonic { // the daemons of one machine share it
			m.shift = int64(h.Monotonic)
		}
		if begins := m.shift + int64(h.Start); i == 0 || begins < x.zero {
			x.zero = begins
		}
	}
	for _, m := range x.nodes {
		m.zero = frame.Time(x.zero - m.shift)
		m.peek()
	}
	return nil
}

// peek finds out when the next call of a node is.
func (m *member) peek() {
	next, err := m.p.Peek()
	m.next, m.ended = m.shift+int64(next), err
}

// play replays all nodes up to an instant, or to what is looked for.
func (x *network) play(ctx context.Context, end frame.Time, until *condition) error {
	last, total := int64(frame.Never), 0.0
	if end < frame.Never-frame.Time(x.zero) {
		last = x.zero + int64(end)
	}
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var m *member
		for _, o := range x.nodes {
			if o.ended == nil && o.next <= last && (m == nil || o.next < m.next) {
				m = o
			}
		}
		if m == nil {
			break
		}
		e, err := m.p.Step()
		if err == nil {
			if e.Kind == replay.Transmit {
				m.left(e.At, e.Port, e.Frames)
			}
			if until != nil && m.looked(until, &total) {
				x.came = m
				return nil
			}
			m.peek()
		} else {
			m.ended = err
		}
	}
	for _, m := range x.nodes {
		if m.ended == nil {
			m.reached = frame.Time(last - m.shift)
		} else {
			if _, err := ending(m.file, m.ended); err != nil {
				return err
			}
		}
	}
	return nil
}

// looked reports whether what --until names has come, behind a call of a node. total is the
// value of all.
func (m *member) looked(c *condition, total *float64) bool {
	if c.drop {
		return m.stopped
	}
	v := 0.0
	if c.node == "" || c.node == m.name {
		v = c.in(m.sw, m.ports)
	}
	*total += v - m.value
	m.value = v
	return c.holds(*total)
}

// shown is the node that a verb of a program shows: that of --node, that at which what
// --until names came, or the only one that it can show.
func (x *network) shown(name, program string) (*member, error) {
	var fit []*member
	var names []string
	for _, m := range x.nodes {
		if programs[m.p.Header.Kind] == program && (name == "" || m.name == name) {
			fit, names = append(fit, m), append(names, m.name)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1 && name == "" && slices.Contains(fit, x.came):
		return x.came, nil
	case len(fit) > 1:
		return nil, usagef("which node is to be shown? Choose it with --node: %s", strings.Join(names, ", "))
	case name != "":
		return nil, usagef("--node %s: there is no record of a node of this name that %s shows", name, program)
	}
	return nil, usagef("none of the records is of a node that %s shows", program)
}
