package export

import (
	"bufio"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"gswitch/telemetry"
)

// collector takes reports, acknowledges some of them, and cuts connections.
type collector struct {
	t    *testing.T
	l    net.Listener
	mu   sync.Mutex
	got  map[uint64]int // how often each was seen
	kept uint64         // acknowledged up to here
	// ack says whether a report is acknowledged, cut whether the connection ends
	// after it.
	ack, cut func(sequence uint64) bool
}

func listen(t *testing.T) *collector {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, l: l, got: map[uint64]int{}}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.serve(conn)
		}
	}()
	return c
}

func (c *collector) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	if h, err := telemetry.ReadHello(r); err != nil || h.Name != "s1" {
		return
	}
	var b []byte
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		if err != nil {
			return
		}
		b = append(b, buf[:n]...)
		for {
			rep, n, err := telemetry.ParseReport(b)
			if err != nil {
				break
			}
			b = b[n:]
			c.mu.Lock()
			c.got[rep.Sequence]++
			ack, cut := c.ack == nil || c.ack(rep.Sequence), c.cut != nil && c.cut(rep.Sequence)
			if ack {
				c.kept = rep.Sequence
			}
			c.mu.Unlock()
			if ack {
				if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, rep.Sequence)); err != nil {
					return
				}
			}
			if cut {
				return
			}
		}
	}
}

func exporter(c *collector, memory uint64) *Exporter {
	return New(slog.New(slog.NewTextHandler(io.Discard, nil)), c.l.Addr().String(), memory, telemetry.Hello{Version: 1, Name: "s1", Boot: 1})
}

// check holds the account: made = acknowledged + lost + waiting.
func check(t *testing.T, c Counts) {
	t.Helper()
	if c.Made != c.Acknowledged+c.Lost+c.Waiting {
		t.Errorf("%+v: made is not the sum of the others", c)
	}
}

// Over a collector that cuts connections, with and without having acknowledged the
// last report, each report comes at least once, and no other.
func TestNothingIsLost(t *testing.T) {
	c := listen(t)
	last, cuts := uint64(0), 0
	c.ack = func(n uint64) bool { return n%3 != 0 || n == 1000 }
	c.cut = func(n uint64) bool {
		if n%97 == 0 && n > last {
			last = n
			cuts++
			return true
		}
		return false
	}
	e := exporter(c, 1<<20)
	for range 1000 {
		e.Add(telemetry.Report{Kind: "test", Body: []byte("body")})
	}
	e.Close(time.Minute)
	n := e.Counts()
	check(t, n)
	if n.Acknowledged != 1000 || n.Lost != 0 || n.Waiting != 0 || n.Bytes != 0 || n.Connects < uint64(cuts) || cuts == 0 {
		t.Errorf("%+v after %d cuts", n, cuts)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range uint64(1000) {
		if c.got[i+1] == 0 {
			t.Errorf("report %d did not come", i+1)
		}
	}
	if len(c.got) != 1000 {
		t.Errorf("%d reports came", len(c.got))
	}
}

// Without a collector as many reports wait as there is memory for, the oldest;
// the others are counted, and their numbers are missing.
func TestMemoryIsBounded(t *testing.T) {
	c := listen(t)
	c.ack = func(uint64) bool { return false }
	one := telemetry.Report{Kind: "test", Body: make([]byte, 100)}
	e := exporter(c, uint64(10*one.Size()))
	for range 25 {
		e.Add(one)
	}
	if n := e.Counts(); n.Waiting != 10 || n.Lost != 15 || n.Bytes != uint64(10*one.Size()) {
		t.Errorf("%+v", n)
	}
	check(t, e.Counts())
	c.mu.Lock()
	c.ack = nil
	c.mu.Unlock()
	e.Change(c.l.Addr().String(), 1<<20, telemetry.Hello{Version: 1, Name: "s1", Nodes: []telemetry.Node{{ID: 1, Name: "s1", Workers: 1}}}) // another connection
	e.Add(one)
	e.Close(time.Minute)
	n := e.Counts()
	check(t, n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.Acknowledged != 11 || n.Lost != 15 || c.kept != 26 || len(c.got) != 11 {
		t.Errorf("%+v; report %d was the last of %d", n, c.kept, len(c.got))
	}
}

// An exporter that closes and cannot wait loses what waits, and counts it.
func TestCloseCounts(t *testing.T) {
	c := listen(t)
	c.ack = func(uint64) bool { return false }
	e := exporter(c, 1<<20)
	for range 7 {
		e.Add(telemetry.Report{Kind: "test"})
	}
	e.Close(10 * time.Millisecond)
	if n := e.Counts(); n.Lost != 7 || n.Waiting != 0 {
		t.Errorf("%+v", n)
	}
	check(t, e.Counts())
}
