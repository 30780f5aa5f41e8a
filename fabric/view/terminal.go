package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// TerminalOptions say how a source is shown.
type TerminalOptions struct {
	Every time.Duration // between pictures; 0 = 200 ms, and 2 s between lines
	Plain bool          // lines, though it is a terminal
	End   bool          // return at the first sample that is the last of a run, not at the end of the source
}

// Terminal shows a source on w until it ends or ctx does, which is no error.
// On a terminal that is large enough it is a picture that is drawn over
// itself and stays when it ends; otherwise a line now and then.
func Terminal(ctx context.Context, w io.Writer, src Source, o TerminalOptions) error {
	t := &terminal{w: w, o: o}
	for {
		began := time.Now()
		s, err := src.Sample(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if s != nil {
			if err := t.show(src.Layout(), s, err != nil || s.Done); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) || s != nil && s.Done && o.End:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(t.every() - time.Since(began)):
		}
	}
}

type terminal struct {
	w      io.Writer
	o      TerminalOptions
	screen Screen
	drawn  int       // lines of the picture that is there
	said   time.Time // the last line
}

func (t *terminal) every() time.Duration {
	if t.o.Every > 0 {
		return t.o.Every
	}
	return 200 * time.Millisecond
}

func (t *terminal) show(l *Layout, s *Sample, last bool) error {
	columns, rows, ok := Size(t.w)
	if !ok || t.o.Plain || columns < MinWidth || rows < MinHeight {
		every := t.o.Every
		if every == 0 {
			every = 2 * time.Second
		}
		if time.Since(t.said) < every && !last {
			return nil
		}
		t.said, t.drawn = time.Now(), 0
		_, err := fmt.Fprintln(t.w, Line(l, s))
		return err
	}
	// A line is left free, so that the picture does not scroll.
	if t.screen.Width != columns || t.screen.Height != rows-1 {
		t.screen.Width, t.screen.Height = columns, rows-1
		if t.drawn > 0 { // lines may have been wrapped: begin anew
			fmt.Fprint(t.w, "\x1b[H\x1b[J")
			t.drawn = 0
		}
	}
	t.screen.Unicode, t.screen.Color = UTF8(), os.Getenv("NO_COLOR") == ""
	var b strings.Builder
	if t.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", t.drawn) // up, to where it began
	}
	lines := t.screen.Draw(l, s)
	for _, x := range lines {
		b.WriteString("\r" + x + "\x1b[K\n") // clear what a longer line left
	}
	b.WriteString("\x1b[J")
	t.drawn = len(lines)
	_, err := io.WriteString(t.w, b.String())
	return err
}

// Size returns the size of the terminal that w is, false if it is none.
func Size(w io.Writer) (columns, rows int, ok bool) {
	f, is := w.(*os.File)
	if !is {
		return 0, 0, false
	}
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || os.Getenv("TERM") == "dumb" {
		return 0, 0, false
	}
	return int(ws.Col), int(ws.Row), true
}

// UTF8 says whether the locale of the environment says that a terminal takes
// UTF-8.
func UTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// portName names a port by its neighbour.
func portName(l *Layout, e End) string {
	for _, k := range l.Links {
		if k.B == e {
			k.A, k.B = k.B, k.A
		}
		if k.A == e && k.B.Node < len(l.Nodes) {
			return l.Nodes[e.Node].Name + ">" + l.Nodes[k.B.Node].Name
		}
	}
	return fmt.Sprintf("%s:%d", l.Nodes[e.Node].Name, e.Port)
}

// Line reports a sample in one line.
func Line(l *Layout, s *Sample) string {
	var deepest *Port
	var goodput float64
	var pauses uint64
	for i := range s.Ports {
		p := &s.Ports[i]
		pauses += p.Pauses
		if p.Node < len(l.Nodes) && l.Nodes[p.Node].Kind == "switch" && (deepest == nil || p.Peak > deepest.Peak) {
			deepest = p
		}
	}
	for i := range s.Flows {
		goodput += s.Flows[i].Goodput
	}
	v := Seconds(s.Time)
	if s.Run != "" {
		v += " " + s.Run
	}
	v += fmt.Sprintf(": %d flows, %d ended", s.Open, s.Ended)
	if len(s.Flows) > 0 {
		slow := &s.Flows[len(s.Flows)-1]
		v += fmt.Sprintf(", goodput %s, slowest %s", Rate(goodput), Rate(slow.Goodput))
	}
	if deepest != nil && deepest.Peak > 0 {
		v += fmt.Sprintf(", longest queue %s at %s", Bytes(float64(deepest.Peak)), portName(l, deepest.End))
	}
	v += fmt.Sprintf(", pauses %d, drops %d", pauses, s.Drops)
	if l.On != "sim" {
		v += ", late " + Seconds(s.Late)
		if l.Bound > 0 && s.Late > l.Bound {
			v += " (INVALID: above " + Seconds(l.Bound) + ")"
		}
	}
	return v
}
