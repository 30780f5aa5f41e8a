package table

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"

	"pgregory.net/rapid"
)

func printed(t *testing.T, print func(b *strings.Builder) error) string {
	t.Helper()
	var b strings.Builder
	if err := print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func expect(t *testing.T, x *Table, want string) {
	t.Helper()
	got := printed(t, func(b *strings.Builder) error { return x.Print(b) })
	if got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
	widest := 0
	for line := range strings.Lines(got) {
		widest = max(widest, len([]rune(strings.TrimSuffix(line, "\n"))))
	}
	if x.Width() < widest {
		t.Errorf("a line of %d characters in a width of %d", widest, x.Width())
	}
}

func TestAlignment(t *testing.T) {
	x := New("A", ">LONG")
	x.Row("wide", 1)
	x.Row("", "µ")
	expect(t, x, "A     LONG\nwide     1\n         µ\n")
	if x.Width() != 10 {
		t.Errorf("it is %d wide", x.Width())
	}
}

func TestRight(t *testing.T) {
	x := Right("TIME", "MIN", "")
	x.Rowf("%s\t%d\t%s", "completion", 7, "ok")
	expect(t, x, "        TIME  MIN\n  completion    7  ok\n")
	y := New(">HOST", ">SENT", "STREAMS").Indented()
	y.Rowf("h%d\t%.1f\t%s", 1, 2.5, "h2 1, h3 1")
	y.Row("all", "")
	expect(t, y, "  HOST  SENT  STREAMS\n    h1   2.5  h2 1, h3 1\n   all\n")
}

// Without titles, rows may have as many cells as they like.
func TestNoTitles(t *testing.T) {
	x := New()
	x.Row("host", "h1", "up")
	x.Row("gateway", "h2")
	expect(t, x, "host     h1  up\ngateway  h2\n")
	expect(t, New(), "")
}

func TestCellsOfSeveralLines(t *testing.T) {
	x := New("HOST", "ADDRESS", "SWITCH")
	x.Row("h1", "10.0.0.1\nfd00::1", "s1")
	x.Row("h2", "-", "s1")
	expect(t, x, "HOST  ADDRESS   SWITCH\nh1    10.0.0.1  s1\n      fd00::1\nh2    -         s1\n")
}

func TestLong(t *testing.T) {
	x := New("PORT", ">SENT", ">LOST")
	x.Row("p1", 10, 2)
	expect(t, x.Long(1), "PORT  COUNTER  VALUE\np1    sent        10\np1    lost         2\n")
}

// What follows a Flush stands in the columns that were written before it.
func TestFlush(t *testing.T) {
	x := Right("MESSAGE", "TOOK")
	x.Row(0, "12us")
	got := printed(t, func(b *strings.Builder) error {
		err := x.Flush(b)
		x.Row(1, "100.5us")
		err = errors.Join(err, x.Flush(b))
		return errors.Join(err, x.Flush(b))
	})
	if want := "  MESSAGE  TOOK\n        0  12us\n        1  100.5us\n"; got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestErrorOfTheWriter(t *testing.T) {
	x := New("A")
	if err := x.Print(full{}); err == nil {
		t.Error("printed to a full disk without an error")
	}
}

var trailing = regexp.MustCompile(` +\n`)

// Any table is that of text/tabwriter, without blanks at the ends of lines.
func TestAsTabwriter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		columns := rapid.IntRange(1, 5).Draw(rt, "columns")
		cells := rapid.SliceOfN(rapid.StringMatching(`[a-zµ ]{0,9}[a-z]|`), columns, columns)
		rows := rapid.SliceOfN(cells, 1, 6).Draw(rt, "rows")
		right := rapid.Bool().Draw(rt, "right")
		x, flags := New(rows[0]...), uint(0)
		if right {
			x, flags = Right(rows[0]...), tabwriter.AlignRight
		}
		var want, got strings.Builder
		w := tabwriter.NewWriter(&want, 0, 8, 2, ' ', flags)
		for i, r := range rows {
			fmt.Fprint(w, strings.Join(r, "\t")+"\t\n")
			if i > 0 {
				x.Rowf("%s", strings.Join(r, "\t"))
			}
		}
		if err := errors.Join(w.Flush(), x.Print(&got)); err != nil {
			rt.Fatal(err)
		}
		if clean := trailing.ReplaceAllString(want.String(), "\n"); got.String() != clean {
			rt.Errorf("printed\n%swant\n%s", got.String(), clean)
		}
	})
}
