package view

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Escape sequences of a terminal (ECMA-48, SGR).
const (
	reset   = "\x1b[0m"
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	blue    = "\x1b[34m"
	magenta = "\x1b[35m"
)

func (c *Screen) paint(color, text string) string {
	if !c.Color {
		return text
	}
	return color + text + reset
}

func (c *Screen) arrow() string {
	if c.Unicode {
		return "→"
	}
	return ">"
}

// bar draws a share of n characters, and a mark where the peak was.
func (c *Screen) bar(v, peak float64, n int) string {
	v, peak = min(1, max(0, v)), min(1, max(0, peak))
	full, part, empty, mark := "#", []string{"", "="}, ".", "|"
	if c.Unicode {
		full, part, empty, mark = "█", []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}, "·", "▕"
	}
	eighths := int(math.Round(v * float64(n*len(part))))
	cells := make([]string, n)
	for i := range cells {
		switch at := eighths - i*len(part); {
		case at >= len(part):
			cells[i] = full
		case at > 0:
			cells[i] = part[at]
		default:
			cells[i] = empty
		}
	}
	if at := int(math.Ceil(peak*float64(n))) - 1; at >= 0 && at*len(part) >= eighths {
		cells[at] = mark
	}
	return strings.Join(cells, "")
}

// width is how many characters a text takes on the screen.
func width(x string) (n int) {
	for i := 0; i < len(x); {
		if x[i] == '\x1b' {
			for i < len(x) && x[i] != 'm' {
				i++
			}
			i++
			continue
		}
		_, k := utf8.DecodeRuneInString(x[i:])
		i, n = i+k, n+1
	}
	return n
}

// pad puts a text to the right of n characters, fill to the left; fill cuts
// what is longer.
func pad(x string, n int) string { return strings.Repeat(" ", max(0, n-width(x))) + x }

func fill(x string, n int) string {
	if r := []rune(x); len(r) > n {
		x = string(r[:n-1]) + "~"
	}
	return x + strings.Repeat(" ", max(0, n-width(x)))
}

// Rate, Bytes and Seconds write numbers for people, with three digits.
func Rate(v float64) string { return scaled(v, "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s") }

// Bytes: a kB is 1000 bytes.
func Bytes(v float64) string { return scaled(v, "B", "kB", "MB", "GB", "TB") }

// Seconds chooses a unit from ns to s.
func Seconds(v float64) string {
	if v >= 1 || v == 0 {
		return digits(v) + " s"
	}
	return scaled(v*1e9, "ns", "us", "ms")
}

func scaled(v float64, units ...string) string {
	i := 0
	for ; v >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	if i == 0 && v < 1 {
		v = 0
	}
	return digits(v) + " " + units[i]
}

func digits(v float64) string {
	switch {
	case v >= 99.95 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
