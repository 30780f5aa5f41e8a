package dataplane

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gswitch/capture"
	"gswitch/frame"
)

// TestPcapInToOut sends a file through a bridge and compares what comes out.
func TestPcapInToOut(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.pcapng"), filepath.Join(dir, "out.pcapng")
	var file bytes.Buffer
	w := capture.NewWriter(&file)
	w.Section("")
	w.Interface("x", "", 0)
	const n = 3000
	var want [][]byte
	for i := range n {
		size := 60 + i%1400
		if i%100 == 0 {
			size = 9000 // several chunks
		}
		b := make([]byte, size)
		setNumber(b, uint64(i))
		want = append(want, b)
		w.Packet(capture.Record{Time: 1e18 + int64(i)*10_000, Wire: uint32(size)}, b)
	}
	w.Flush()
	if err := os.WriteFile(in, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, fast := range []bool{true, false} {
		e := mustEngine(t, Config{})
		b := newBridge(e.Worker(0))
		mustNode(t, e, 0, b)
		mustPort(t, e, 0, b, 1, PortSpec{Kind: Pcap, Out: out})
		mustPort(t, e, 0, b, 0, PortSpec{Kind: Pcap, In: in, MaxSpeed: fast})
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, e.Worker(0), func() bool { return b.sent == n })
		for {
			if p := state(e, 0); p.InputEnded {
				break
			}
			pause()
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
		f, err := os.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		r, err := capture.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		first, last := int64(0), int64(0)
		for i := range n {
			rec, d, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(d, want[i]) || rec.Dir != capture.DirOut {
				t.Fatalf("frame %d: %d bytes, %v, want %d bytes", i, len(d), rec.Dir, len(want[i]))
			}
			if i == 0 {
				first = rec.Time
			}
			last = rec.Time
		}
		f.Close()
		// With the file's timing nothing leaves early.
		if !fast && last-first < (n-1)*10_000-1_000_000 {
			t.Errorf("the file's %d ms were replayed in %d us", n/100, (last-first)/1000)
		}
	}
}

func TestPcapErrors(t *testing.T) {
	e := mustEngine(t, Config{})
	b := newBridge(e.Worker(0))
	mustNode(t, e, 0, b)
	bad := filepath.Join(t.TempDir(), "bad")
	os.WriteFile(bad, []byte("this is not a capture"), 0o600)
	for _, s := range []PortSpec{{Kind: Pcap}, {Kind: Pcap, In: "/nonexistent/x.pcap"}, {Kind: Pcap, In: bad}, {Kind: Pcap, Out: "/nonexistent/x.pcap"}} {
		if _, err := e.AddPort(0, b, 0, s); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
	if n := len(e.Stats().Ports); n != 0 {
		t.Errorf("%d ports are left over", n)
	}
}

// A capture sees both directions and the drops with their reasons; frames are
// conserved and the node is left as before.
func TestCapture(t *testing.T) {
	w, left, right, b := loop(t, PortSpec{})
	e := w.engine
	left.toSend, b.dropEvery = 100, 10
	var buf bytes.Buffer
	f, err := capture.ParseFilter("ether proto 0x88b5")
	if err != nil {
		t.Fatal(err)
	}
	var ports []*Port
	for _, p := range e.ports {
		if p.node == frame.Node(b) {
			ports = append(ports, p)
		}
	}
	c, err := e.Capture(&buf, CaptureSpec{Ports: ports, Drops: true, Filter: f})
	if err != nil {
		t.Fatal(err)
	}
	for now := range frame.Time(50) {
		w.step(now)
	}
	if right.received != 90 {
		t.Errorf("%d frames arrived, want 90", right.received)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if b.dropped != nil {
		t.Error("the drop tap was left open")
	}
	if st := c.Stats(); st.Captured != 200 || st.Dropped != 0 {
		t.Errorf("%+v, want 100 in, 10 dropped and 90 out", st)
	}
	r, err := capture.NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	var seen [4]int
	for {
		rec, _, err := r.Next()
		if err != nil {
			break
		}
		seen[rec.Dir]++
		if rec.Dir == capture.DirDrop && rec.Reason != frame.SourceZero {
			t.Errorf("reason %v", rec.Reason)
		}
	}
	if seen != [4]int{0, 100, 90, 10} {
		t.Errorf("captured %v by direction, want 100 in, 90 out, 10 drops", seen)
	}
}

// A port whose file can no longer be written goes down, and says why.
func TestPcapOutputOnAFullDisk(t *testing.T) {
	e := mustEngine(t, Config{})
	b := newBridge(e.Worker(0))
	mustNode(t, e, 0, b)
	mustPort(t, e, 0, b, 1, PortSpec{Kind: Pcap, Out: "/dev/full"})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if p := state(e, 1); p.State != "" && !p.Up {
			if !strings.Contains(p.State, "/dev/full") || !strings.Contains(p.State, "no space left on device") {
				t.Errorf("the port is %q", p.State)
			}
			return
		}
		runtime.Gosched()
	}
}
