package view

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Screen draws samples as text of a fixed size. The zero value but for Width
// and Height draws in ASCII without colours. It keeps which ports were
// busy, so that lines do not jump about.
type Screen struct {
	Width, Height int  // characters; at least MinWidth x MinHeight
	Unicode       bool // blocks and arrows, of UTF-8
	Color         bool // escape sequences of a terminal (ECMA-48)

	layout *Layout
	ends   *ends
	rank   []float64 // by end: how busy of late
	full   float64   // queue that fills a bar
}

// MinWidth and MinHeight are the smallest screen.
const (
	MinWidth  = 72
	MinHeight = 12
)

// Draw returns the lines of a picture, each at most Width characters wide and
// at most Height of them.
func (c *Screen) Draw(l *Layout, s *Sample) []string {
	if c.layout != l {
		c.layout, c.ends, c.full = l, newEnds(l), 0
		c.rank = make([]float64, len(c.ends.end))
	}
	lines := []string{c.heading(l, s), c.totals(l, s), ""}
	flows := c.flowLines(s)
	room := c.Height - len(lines) - len(flows) - 1
	lines = append(lines, c.ports(l, s, max(1, room))...)
	lines = append(lines, flows...)
	for i, x := range lines {
		lines[i] = strings.TrimRight(c.cut(x), " ")
	}
	return lines[:min(len(lines), c.Height)]
}

// cut shortens a line that is too wide. Escape sequences take no room.
func (c *Screen) cut(x string) string {
	n := 0
	for i := 0; i < len(x); {
		if x[i] == '\x1b' {
			for i < len(x) && x[i] != 'm' {
				i++
			}
			i++
			continue
		}
		if n == c.Width {
			if c.Color {
				return x[:i] + reset
			}
			return x[:i]
		}
		_, k := utf8.DecodeRuneInString(x[i:])
		i, n = i+k, n+1
	}
	return x
}

func (c *Screen) heading(l *Layout, s *Sample) string {
	name := l.Title
	if name == "" {
		name = l.Name
	}
	on := map[string]string{"sim": "virtual time", "netns": "real frames", "lab": "live"}[l.On]
	if l.Scale > 1 {
		on += fmt.Sprintf(", 1:%.4g", l.Scale)
	}
	left := c.paint(bold, name)
	if s.Run != "" { // which run it is counts more than what all have in common
		left = c.paint(bold, s.Run) + "  " + name
	}
	at := Seconds(s.Time)
	if l.End > 0 {
		at += " of " + Seconds(l.End)
	}
	return c.spread(left, at+"  "+on)
}

// spread puts one text to the left and one to the right.
func (c *Screen) spread(left, right string) string {
	gap := c.Width - width(left) - width(right)
	if gap < 2 {
		left = c.cutTo(left, c.Width-width(right)-2)
		gap = c.Width - width(left) - width(right)
	}
	return left + strings.Repeat(" ", max(1, gap)) + right
}

func (c *Screen) cutTo(x string, n int) string {
	short := *c
	short.Width = max(0, n)
	return short.cut(x)
}

func (c *Screen) totals(l *Layout, s *Sample) string {
	var goodput float64
	var pauses uint64
	halted := 0
	for i := range s.Flows {
		goodput += s.Flows[i].Goodput
	}
	for i := range s.Ports {
		pauses += s.Ports[i].Pauses
		if s.Ports[i].Halted > 0 || s.Ports[i].Paused != 0 {
			halted++
		}
	}
	v := fmt.Sprintf("flows %d, ended %d", s.Open, s.Ended)
	if len(s.Flows) > 0 {
		v += ", goodput " + Rate(goodput)
	}
	drops := fmt.Sprintf("drops %d", s.Drops)
	if s.Drops > 0 {
		drops = c.paint(red, drops)
	}
	p := fmt.Sprintf("pauses %d", pauses)
	if halted > 0 {
		p = c.paint(magenta, fmt.Sprintf("%s (%d ports stopped)", p, halted))
	}
	return c.spread(v+"   "+drops+"   "+p, c.late(l, s))
}

// late says how late workers are, and what that means.
func (c *Screen) late(l *Layout, s *Sample) string {
	switch {
	case l.On == "sim":
		return ""
	case l.Bound > 0 && s.Late > l.Bound:
		return c.paint(red, "INVALID: late "+Seconds(s.Late)+" > "+Seconds(l.Bound))
	case l.Bound > 0:
		return "late " + Seconds(s.Late) + " < " + Seconds(l.Bound)
	}
	return "late " + Seconds(s.Late)
}

// ports is the table of switches' ports: all where there is room, else those
// that are busiest, in the order of the topology.
func (c *Screen) ports(l *Layout, s *Sample, room int) []string {
	type row struct {
		p   *Port
		end int
	}
	var rows []row
	top := 0.0
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Node >= len(l.Nodes) || l.Nodes[p.Node].Kind != "switch" || c.ends.base[p.Node]+p.Port >= c.ends.base[p.Node+1] {
			continue
		}
		at := c.ends.at(p.End)
		top = max(top, float64(p.Peak), float64(p.Queue))
		now := float64(p.Peak) + float64(p.Queue)
		if r := c.ends.rate[at]; r > 0 {
			now += 1000 * p.Sent / r
		}
		c.rank[at] = max(now+1e4*p.Halted, 0.9*c.rank[at])
		rows = append(rows, row{p, at})
	}
	c.full = round125(max(10e3, top, c.full*0.98))
	left := 0
	if len(rows) > room-1 {
		slices.SortStableFunc(rows, func(a, b row) int {
			switch x, y := c.rank[a.end], c.rank[b.end]; {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return a.end - b.end
		})
		left = len(rows) - (room - 2)
		rows = rows[:max(0, room-2)]
		slices.SortFunc(rows, func(a, b row) int { return a.end - b.end })
	}
	bar := max(8, c.Width-64-c.extra())
	lines := []string{c.paint(dim, fmt.Sprintf("%-*s %-8s %9s  %s %7s %7s STOP STOPS", 16+c.extra(), "PORT", "LOAD", "SENDS", fill("QUEUE to "+Bytes(c.full), bar), "NOW", "PEAK"))}
	for _, r := range rows {
		lines = append(lines, c.port(l, s, r.p, r.end, bar))
	}
	if left > 0 {
		lines = append(lines, c.paint(dim, fmt.Sprintf("and %d ports that are less busy", left)))
	}
	return lines
}

// extra is room that names get on a wide screen.
func (c *Screen) extra() int { return min(10, max(0, (c.Width-90)/2)) }

// port is the line of a port: STOP is the share of the time that its neighbour
// stopped it, STOPS that it stopped its neighbour.
func (c *Screen) port(l *Layout, s *Sample, p *Port, end, bar int) string {
	name, stops := l.Nodes[p.Node].Name, "-"
	if far := c.ends.peer[end]; far >= 0 {
		name += c.arrow() + l.Nodes[c.ends.end[far].Node].Name
		if i := slices.IndexFunc(s.Ports, func(q Port) bool { return q.End == c.ends.end[far] }); i >= 0 {
			stops = c.halted(&s.Ports[i])
		}
	}
	load := 0.0
	if r := c.ends.rate[end]; r > 0 {
		load = min(1, p.Sent/r)
	}
	stop := c.halted(p)
	if !p.Up {
		stop = c.paint(red, "down")
	}
	peak := float64(p.Peak) / c.full
	if peak < 0.01 { // an acknowledgement or two: no queue
		peak = 0
	}
	depth := green
	if peak > 0.5 {
		depth = red
	} else if peak > 0.125 {
		depth = yellow
	}
	return fmt.Sprintf("%s %s %9s  %s %7s %7s %s %s", fill(name, 16+c.extra()), c.paint(blue, c.bar(load, 0, 8)), Rate(p.Sent),
		c.paint(depth, c.bar(float64(p.Queue)/c.full, peak, bar)), Bytes(float64(p.Queue)), Bytes(float64(p.Peak)), pad(stop, 4), pad(stops, 5))
}

// halted is the share of the time that a port was stopped.
func (c *Screen) halted(p *Port) string {
	if p.Halted == 0 && p.Paused == 0 {
		return "-"
	}
	return c.paint(magenta, fmt.Sprintf("%.0f%%", 100*p.Halted))
}

// flowLines report the flows that move least and most.
func (c *Screen) flowLines(s *Sample) []string {
	var lines []string
	say := func(what string, f *Flow) {
		l := c.layout
		if f.Src >= len(l.Nodes) || f.Dst >= len(l.Nodes) {
			return
		}
		x := fmt.Sprintf("%-8s %s  %s (%s allowed)", what, fill(l.Nodes[f.Src].Name+c.arrow()+l.Nodes[f.Dst].Name, 14), Rate(f.Goodput), Rate(f.Rate))
		if f.Window > 0 {
			x += ", window " + Bytes(float64(f.Window))
		}
		lines = append(lines, x+", in flight "+Bytes(float64(f.Flight))+" "+f.Control)
	}
	if len(s.Flows) > 0 && c.Height >= 20 {
		lines = append(lines, "")
		say("slowest", &s.Flows[len(s.Flows)-1])
		if len(s.Flows) > 1 {
			say("fastest", &s.Flows[0])
		}
	}
	return lines
}

// round125 rounds up to 1, 2 or 5 times a power of ten.
func round125(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 5} {
		if v <= k*p*1.001 {
			return k * p
		}
	}
	return 10 * p
}
