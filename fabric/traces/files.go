package traces

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gswitch/capture"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/section"
	"gswitch/wholefile"
)

// Dir is the folder of a directory of results that has the copies of its runs: of
// each a file of packets and the network that it is of.
const Dir = "copies"

// EndKey is the value of a run that counts the traces that end at a switch or host,
// by all that is known.
func EndKey(name string) string { return "ends_at_" + key(name) + "_total" }

// LoopKey counts the traces that come to a switch again.
func LoopKey(name string) string { return "loops_at_" + key(name) + "_total" }

// PauseKey counts the pauses of a switch or host that switches saw.
func PauseKey(name string) string { return "pauses_by_" + key(name) + "_total" }

// HopKey is the longest time from the arrival at a switch to that at the next.
func HopKey(from, to string) string { return "hop_" + key(from) + "_" + key(to) + "_max_seconds" }

// HopPacketsKey counts the traced packets that took a link.
func HopPacketsKey(from, to string) string {
	return "hop_" + key(from) + "_" + key(to) + "_packets_total"
}

func key(name string) string { return strings.ReplaceAll(name, "-", "_") }

// Files returns the files of packets that a name stands for: itself, or those of a
// directory of results.
func Files(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	files, err := filepath.Glob(filepath.Join(name, Dir, "*.pcapng"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no copies: they are there when measure.traces names hosts that collect them", name)
	}
	return files, err
}

// Network returns the network that lies beside a file of packets, nil if there is
// none.
func Network(file string) (*fabric.Topology, error) {
	name := strings.TrimSuffix(file, filepath.Ext(file)) + ".json"
	data, err := wholefile.Read(name, section.MaxDocument)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := new(fabric.Topology)
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := t.CheckIndices(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Read makes a book of files of packets, of a network; nil if it is not known.
func Read(files []string, t *fabric.Topology) (*Book, error) {
	var plan *fabric.Plan
	if t != nil {
		var err error
		if plan, err = fabric.NewPlan(t); err != nil {
			return nil, err
		}
	}
	b := New(plan)
	for _, name := range files {
		if err := b.read(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b, nil
}

func (b *Book) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := capture.NewReader(f)
	if err != nil {
		return err
	}
	last := frame.Time(0)
	for {
		rec, data, err := r.Next()
		if errors.Is(err, io.EOF) {
			b.Finish(last)
			return nil
		}
		if err != nil {
			return err
		}
		last = max(last, frame.Time(rec.Time))
		b.Add(last, data)
	}
}
