package clocktime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// now compiles the example, which reads pages in C.
func now(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv("GSWITCH_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs gcc")
	}
	exe := filepath.Join(t.TempDir(), "now")
	if out, err := exec.Command(cc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", ".", "-o", exe, "../examples/clock/now.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// Go and C read the same of a page.
func TestPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h1.clock")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Now(); !errors.Is(err, ErrUnknown) {
		t.Errorf("a clock that is not synchronised: %v", err)
	}
	exe := now(t)
	if out, err := exec.Command(exe, path).CombinedOutput(); err == nil {
		t.Errorf("in C: %s", out)
	}
	for _, k := range []struct {
		m                Image
		at, first, after int64
	}{
		{Image{At: 1000, Time: 5000, Eps: 40, Drift: 200_000}, 1000, 4960, 5040},
		{Image{At: 1000, Time: 5000, Eps: 40, Drift: 200_000}, 0, 4960, 5040},
		{Image{At: 1000, Time: 5000, Eps: 40, Drift: 200_000}, 1_001_000, 1_005_000 - 240, 1_005_000 + 240},
		{Image{At: 0, Time: 1, Eps: 0, Drift: 200_000}, 1, 1, 3}, // rounded up
		{Image{At: 0, Time: 1_800_000_000e9, Eps: 1, Drift: 200_000, State: Holdover, Epoch: 3, Root: 9}, 86_400e9, 1_800_086_400e9 - 17_280_000_001, 1_800_086_400e9 + 17_280_000_001},
	} {
		w.Write(&k.m)
		m, err := c.Image()
		if err != nil || m != k.m {
			t.Errorf("%+v, %v, want %+v", m, err, k.m)
		}
		first, after, err := m.Between(k.at)
		out, cerr := exec.Command(exe, path, fmt.Sprint(k.at)).CombinedOutput()
		if want := fmt.Sprintf("%d %d", first, after); err != nil || cerr != nil || strings.TrimSpace(string(out)) != want || first != k.first || after != k.after {
			t.Errorf("%+v at %d: %d to %d (%v), in C %s, want %d to %d", k.m, k.at, first, after, err, out, k.first, k.after)
		}
	}
	w.Write(&Image{At: 0, Time: 0, Eps: 5})
	from, to, err := c.Now()
	if d := to.Sub(from); err != nil || d != 10*time.Nanosecond {
		t.Errorf("an interval of %v, %v", d, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("the page is still there")
	}
	other := filepath.Join(t.TempDir(), "other")
	for _, b := range [][]byte{nil, make([]byte, pageSize)} {
		if os.WriteFile(other, b, 0o600); true {
			if _, err := Open(other); err == nil {
				t.Errorf("%d bytes are taken for a page", len(b))
			}
		}
	}
}

// What a reader was given as past remains so, in Go and in C: the beginning of the interval
// does not go back with a clock that was set back, or is less certain, until there is another
// root.
func TestReadersNeverGoBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h1.clock")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, k := range []struct {
		m               Image
		earliest, after int64
	}{
		{Image{Time: 90_000, Eps: 10, Root: 1}, 89_990, 90_010},
		{Image{Time: 89_980, Eps: 10, Root: 1}, 89_990, 89_990},
		{Image{Time: 89_985, Eps: 30, Root: 1}, 89_990, 90_015},
		{Image{Time: 90_100, Eps: 30, Root: 1}, 90_070, 90_130},
		{Image{Time: 50_000, Eps: 10, Root: 2}, 49_990, 50_010},
	} {
		k.m.At = 1 << 62 // the instant itself, whenever it is read
		w.Write(&k.m)
		from, to, err := c.Now()
		if err != nil || from.UnixNano() != k.earliest || to.UnixNano() != k.after {
			t.Errorf("%d: %d to %d (%v), want %d to %d", i, from.UnixNano(), to.UnixNano(), err, k.earliest, k.after)
		}
	}
	// In C by instants that lie the same way: behind one of 1000 comes one of 0.
	w.Write(&Image{Time: 5000, Eps: 40})
	if out, err := exec.Command(now(t), path, "1000", "0").CombinedOutput(); err != nil || string(out) != "5960 6040\n5960 5960\n" {
		t.Errorf("in C: %q, %v", out, err)
	}
}

// A reader never sees half of what was written.
func TestReadersSeeWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h1.clock")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.Write(&Image{})
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for i := range int64(20_000) {
			w.Write(&Image{At: i, Time: i, Eps: i, Drift: i, Root: uint64(i)})
		}
	})
	for last := int64(-1); last < 19_999; {
		m, err := c.Image()
		if err != nil {
			t.Fatal(err)
		}
		if m.Time != m.At || m.Eps != m.At || m.Drift != m.At || m.Root != uint64(m.At) || m.At < last {
			t.Fatalf("%+v behind %d", m, last)
		}
		last = m.At
	}
	done.Wait()
}
