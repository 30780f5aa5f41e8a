package lab

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric"
)

func TestForeignFolder(t *testing.T) {
	needRoot(t)
	l := layoutOf(t, "folder", "star(1)", fabric.L2, Options{})
	dir := filepath.Join(runDir, l.Plan.Topology.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Up(t.Context(), l, os.Args[0], t.Logf); err == nil || !strings.Contains(err.Error(), "precious") {
		t.Errorf("up over a foreign folder: %v", err)
	}
	if _, err := Down(l.Plan.Topology.Name, t.Logf); err == nil {
		t.Error("down of a foreign folder went well")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// Whatever stands in a state, it is refused or can be worked with.
func FuzzState(f *testing.F) {
	l := layoutOf(f, "fuzz", "leaf-spine(1, 2, 1)", fabric.L3, Options{})
	good, err := json.Marshal(newState(l))
	if err != nil {
		f.Fatal(err)
	}
	name := l.Plan.Topology.Name
	if s, err := decodeState(name, good); err != nil || len(s.inspect().Hosts) != 2 {
		f.Fatalf("a good state is refused: %v", err)
	}
	f.Add(good)
	f.Add(bytes.Replace(good, []byte(`"Node":1,`), []byte(`"Node":7,`), 1))
	f.Add(bytes.Replace(good, []byte(`gf.`), []byte(`../`), 1))
	f.Add([]byte(`{"version":1,"name":"` + name + `","token":"x","topology":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := decodeState(name, data); err == nil {
			s.inspect().WriteTable(io.Discard)
		}
	})
}

func TestLock(t *testing.T) {
	needRoot(t)
	lk, err := acquire(testPrefix + "lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := acquire(testPrefix + "lock"); err == nil || !strings.Contains(err.Error(), "another gfabric") {
		t.Errorf("second lock: %v", err)
	}
	lk.release()
	again, err := acquire(testPrefix + "lock")
	if err != nil {
		t.Fatal(err)
	}
	again.release()
}
