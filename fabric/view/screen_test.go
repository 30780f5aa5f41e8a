package view

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"gswitch/fabric/goldentest"
)

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

// seen returns a layout and a sample of an incast that is under way.
func seen(t *testing.T) (*Layout, *Sample) {
	n := incast(t)
	s := Network(n, NetworkOptions{Title: "Six hosts send to one", Run: "dcqcn (seed 1)", Groups: []string{"even", "odd"}, Every: 200 * us, End: 5000 * us})
	defer s.Close()
	return s.Layout(), next(t, n, s, 200*us)
}

// The names and the shape of what viewers get: fields may be added.
func TestJSON(t *testing.T) {
	l, s := seen(t)
	goldentest.Compare(t, "layout.json", encode(t, l))
	goldentest.Compare(t, "sample.json", encode(t, s))
}

func TestScreens(t *testing.T) {
	l, s := seen(t)
	real := *l
	real.On, real.Scale, real.Bound = "netns", 1000, 3.2e-6
	late := *s
	late.Late, late.Drops = 4.4e-6, 17
	late.Ports = append([]Port(nil), s.Ports...)
	late.Ports[9].Up = false
	for _, c := range []struct {
		name   string
		screen Screen
		l      *Layout
		s      *Sample
	}{
		{"80x24.txt", Screen{Width: 80, Height: 24}, l, s},
		{"80x24-unicode.txt", Screen{Width: 80, Height: 24, Unicode: true}, l, s},
		{"132x40.txt", Screen{Width: 132, Height: 40, Unicode: true}, l, s},
		{"72x12.txt", Screen{Width: 72, Height: 12}, l, s},
		{"color.txt", Screen{Width: 100, Height: 30, Unicode: true, Color: true}, &real, &late},
	} {
		lines := c.screen.Draw(c.l, c.s)
		if len(lines) > c.screen.Height {
			t.Errorf("%s: %d lines", c.name, len(lines))
		}
		for _, x := range lines {
			if width(x) > c.screen.Width {
				t.Errorf("%s: %d characters: %q", c.name, width(x), x)
			}
		}
		goldentest.Compare(t, c.name, strings.Join(lines, "\n")+"\n")
	}
	goldentest.Compare(t, "line.txt", Line(l, s)+"\n"+Line(&real, &late)+"\n")
}

// What is no terminal gets lines, the last sample among them.
func TestTerminalOfAPipe(t *testing.T) {
	n := incast(t)
	s := Network(n, NetworkOptions{Run: "only", Every: 100 * us})
	if err := n.Engine.Run(300 * us); err != nil {
		t.Fatal(err)
	}
	s.Close()
	var b bytes.Buffer
	if err := Terminal(context.Background(), &b, s, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.HasPrefix(got, "300 us only: 6 flows, 0 ended, ") || strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range [][2]string{
		{Rate(0), "0 b/s"}, {Rate(999.4e6), "999 Mb/s"}, {Rate(999.6e6), "1.00 Gb/s"}, {Rate(25e9), "25 Gb/s"}, {Rate(1.234e9), "1.23 Gb/s"},
		{Bytes(1500), "1.50 kB"}, {Bytes(64), "64 B"}, {Seconds(0), "0 s"}, {Seconds(12.34e-6), "12.3 us"}, {Seconds(0.5e-9), "0 ns"}, {Seconds(73), "73 s"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
