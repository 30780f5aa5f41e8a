package gcollect

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sys/unix"

	"gswitch/collect"
	"gswitch/collect/ipfix"
)

func events(from, n int) (v []collect.Event) {
	at := time.Unix(1_700_000_000, 123_456_789).UTC()
	for i := range n {
		v = append(v, collect.Event{Seq: uint64(from + i), ID: strings.Repeat("a", i), Kind: collect.Loss, At: at, Until: at.Add(time.Second), What: "congestion", Where: "s1>s2",
			Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 65535, DstPort: 80, Protocol: 6, Packets: uint64(i)})
	}
	return v
}

// Files have what was written, none of it twice, and say how far they go.
func TestParquet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	if last, err := written(dir); last != 0 || err != nil {
		t.Fatalf("%d, %v", last, err)
	}
	w := &parquetFiles{dir: dir, most: 4}
	v := events(3, 10)
	for i := range v {
		if err := w.add(&v[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	if last, err := written(dir); last != 12 || err != nil || w.files != 3 || w.events != 10 {
		t.Errorf("%d, %v; %d files, %d events", last, err, w.files, w.events)
	}
	files, _ := os.ReadDir(dir)
	if len(files) != 3 {
		t.Fatalf("%v", files)
	}
	n := 0
	for _, f := range files { // by name, which is by number
		rows, err := parquet.ReadFile[row](filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			want := rowOf(&v[n])
			if n++; !r.At.Equal(want.At) || !r.Until.Equal(want.Until) {
				t.Errorf("at %v until %v, want %v and %v", r.At, r.Until, want.At, want.Until)
			}
			if r.At, r.Until = want.At, want.Until; r != want {
				t.Errorf("%+v, want %+v", r, want)
			}
		}
	}
	if n != 10 {
		t.Errorf("%d rows", n)
	}
}

// A disk that is full ends the export with the name of the file, and leaves none that is
// half there: the next export begins where the last whole file ends.
func TestParquetOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a disk that is small")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, 0)
	w := &parquetFiles{dir: dir, most: 1}
	v := events(1, 10)
	n, err := 0, error(nil)
	for ; n < len(v) && err == nil; n++ {
		err = w.add(&v[n])
	}
	name := filepath.Join(dir, fmt.Sprintf(parquetName, n, n))
	if !errors.Is(err, unix.ENOSPC) || !strings.HasPrefix(err.Error(), name+": ") {
		t.Errorf("event %d: %v", n, err)
	}
	files, _ := os.ReadDir(dir)
	if last, err := written(dir); len(files) != n-1 || w.files != n-1 || last != uint64(n-1) || err != nil {
		t.Errorf("%v; the last event is %d, %v", files, last, err)
	}
}

func TestStatus(t *testing.T) {
	for what, want := range map[string]uint8{"congestion": ipfix.Congestion, "blackhole": ipfix.Unroutable, "looped": ipfix.BadTTL, "random": ipfix.Dropped, "lost": ipfix.Dropped} {
		if f := flowOf(&collect.Event{What: what}); f.Status != want {
			t.Errorf("%s has the status %d", what, f.Status)
		}
	}
	for what, want := range map[string]bool{"lost": true, "delivered": false} {
		e := events(1, 2)[1]
		if e.What = what; isLoss(&e) != want {
			t.Errorf("%s is among the flows that lost packets: %t", what, !want)
		}
	}
}

// The table of ClickHouse has a column for each key of an event, and no other.
func TestSchema(t *testing.T) {
	text, err := os.ReadFile("../../deploy/clickhouse/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^    ([a-z_]+) +[A-Z]`).FindAllStringSubmatch(string(text), -1) {
		columns[m[1]] = true
	}
	e := events(1, 2)[1]
	e.Known, e.Toward, e.Reason, e.Path, e.Times, e.Classes = e.At, "x", "x", "x", "x", 1
	line, err := json.Marshal(&e)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(line, &keys); err != nil {
		t.Fatal(err)
	}
	for k := range keys {
		if !columns[k] {
			t.Errorf("no column %s", k)
		}
		delete(columns, k)
	}
	if len(columns) != 0 {
		t.Errorf("columns that no event has: %v", columns)
	}
}
