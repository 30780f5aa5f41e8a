package run

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/dataplane"
	"gswitch/fabric"
	"gswitch/fabric/live"
	"gswitch/fabric/pauses"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/sim"
)

// Messages between the process that runs a scenario and those that step its nodes: values
// of encoding/gob over a Unix socket. Instants are in the nodes' time.

// setup is the first message to a process: the whole run, and the part of this process.
type setup struct {
	Version  string // of the program; both processes have the same
	Name     string // of the process
	File     string
	Document []byte
	Seed     uint64
	Duration frame.Time
	Pauses   int // that each switch keeps

	Own       []bool // by node of the topology: this process steps it
	Ends      [][]wireEnd
	Processes int

	Dilation int64
	Bound    frame.Time
	Workers  int
	Poll     dataplane.PollMode
	CPUs     []int
}

// wireEnd is the interface of a port.
type wireEnd struct{ NetNS, Interface string }

// End implements live.Wires.
func (s *setup) End(node, port int) (netns, iface string) {
	e := s.Ends[node][port]
	return e.NetNS, e.Interface
}

// order is an instruction to a process. Exactly one of its fields is set.
type order struct {
	Begin int64 // CLOCK_MONOTONIC in nanoseconds at time 0 of the nodes
	Open  *opening
	Post  *posting
	Close *closing
	End   bool // end the run
}

// opening opens the local ends of a connection.
type opening struct {
	Ends   vnet.Ends
	Serial vnet.Conn // identifies the connection; never reused
	Group  int       // entry of the workload that describes its flows
	Src    int
	Dst    int
	ID     uint64 // see vnet.Flow
	NoECN  bool
	Stream bool // the arrival of its messages need not be reported
}

// posting posts a message of a connection at a given time.
type posting struct {
	Serial vnet.Conn
	At     frame.Time
	Bytes  uint64
	ID     uint64
	// Until is the time from which a message that is done is no longer followed by
	// another like it. 0 for messages that are posted once.
	Until frame.Time
}

type closing struct{ Serial vnet.Conn }

// report is a message from a process.
type report struct {
	Ready  bool // the ports are up
	Events []event
	// Pauses are some of the pauses that its switches logged. They are sent before Last,
	// so that no message grows with the log.
	Pauses []pauses.Pause
	Last   *summary
	Error  string // why the process ends the run
}

// mostPauses is the largest number of pauses in a report.
const mostPauses = 1000

// event is an event of a connection.
type event struct {
	What   what
	Serial vnet.Conn
	At     frame.Time

	// Of sent.
	ID       uint64
	Start    frame.Time
	Retrans  uint32
	Timeouts uint32
}

type what uint8

const (
	opened  what = iota // the receiver's end
	arrived             // a message has reached its receiver
	sent                // a message: the sender has its acknowledgement
)

// summary holds the measurements of a process. It is part of its last message.
type summary struct {
	Timing *live.ProcessTiming
	Links  sim.Stats
	Tally  tally

	Queues []sampledQueue
	Sent   []sampledLink
	Acked  []sampledConn
	RTTs   []sampledRTT

	Forgotten uint64 // pauses that switches discarded
	Waits     []pauses.Wait
}

// check rejects a summary that cannot come from a run with this many queues and links in
// the network.
func (s *summary) check(t *fabric.Topology, queues, links int) error {
	if s.Timing == nil {
		return errors.New("it has no times")
	}
	for _, q := range s.Queues {
		if q.Queue < 0 || q.Queue >= queues {
			return fmt.Errorf("it sampled queue %d of %d", q.Queue, queues)
		}
	}
	carried := make([]uint64, links)
	for _, l := range s.Sent {
		if l.Link < 0 || l.Link >= links || l.Bytes < carried[l.Link] {
			return fmt.Errorf("it sampled link %d of %d with %d bytes", l.Link, links, l.Bytes)
		}
		carried[l.Link] = l.Bytes
	}
	for _, w := range s.Waits {
		if err := checkEnd(t, w.At); err != nil {
			return err
		}
	}
	return nil
}

// checkPause rejects a pause that does not fit the network.
func checkPause(t *fabric.Topology, p *pauses.Pause) error {
	for _, e := range []pauses.End{p.By, p.Of} {
		if err := checkEnd(t, e); err != nil {
			return err
		}
	}
	for _, c := range p.Causes {
		if err := checkEnd(t, c.Port); err != nil {
			return err
		}
	}
	if p.Class < 0 || p.Class > 7 || !(p.From >= 0 && p.To >= p.From && p.To < math.MaxFloat64) {
		return fmt.Errorf("it reports a pause of class %d from %v s to %v s", p.Class, p.From, p.To)
	}
	return nil
}

// checkEnd rejects a port that does not exist in the network.
func checkEnd(t *fabric.Topology, e pauses.End) error {
	if i, ok := t.Lookup(e.Node); !ok || e.Port < 0 || e.Port >= len(t.Nodes[i].Links) {
		return fmt.Errorf("it reports port %d of %q, which is not there", e.Port, e.Node)
	}
	return nil
}

// Samples are reported only where they changed, with the number of the sample or bin.
type (
	sampledQueue struct {
		Tick  int64
		Queue int
		Bytes uint64
	}
	sampledLink struct {
		Bin   int64
		Link  int
		Bytes uint64
	}
	sampledConn struct {
		Bin    int64
		Serial vnet.Conn
		Bytes  uint64
	}
	sampledRTT struct {
		At     frame.Time
		Serial vnet.Conn
		RTT    frame.Time
	}
)

// pipe is one end of the socket. One goroutine reads, one writes.
type pipe struct {
	out *bufio.Writer
	enc *gob.Encoder
	dec *gob.Decoder
}

func newPipe(c io.ReadWriter) *pipe {
	p := &pipe{out: bufio.NewWriterSize(c, 1<<16)}
	p.enc, p.dec = gob.NewEncoder(p.out), gob.NewDecoder(bufio.NewReaderSize(c, 1<<16))
	return p
}

func (p *pipe) write(v any) error { return p.enc.Encode(v) }
func (p *pipe) flush() error      { return p.out.Flush() }

// send encodes a value and flushes.
func (p *pipe) send(v any) error {
	if err := p.write(v); err != nil {
		return err
	}
	return p.flush()
}

// read decodes a value. It fails on anything else.
func (p *pipe) read(v any) error { return p.dec.Decode(v) }

// monotonic reads CLOCK_MONOTONIC, which all processes of a machine share.
func monotonic() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("CLOCK_MONOTONIC: %w", err)
	}
	return t.Nano(), nil
}

// instant converts a reading of CLOCK_MONOTONIC to a time.Time, whose monotonic reading
// starts elsewhere in each process. It takes the best of several tries, since an
// interruption between the two clock readings would shift the process's time.
func instant(at int64) (best time.Time, err error) {
	least := time.Duration(1<<63 - 1)
	for range 32 {
		before := time.Now()
		mono, err := monotonic()
		if err != nil {
			return best, err
		}
		after := time.Now()
		if took := after.Sub(before); took < least {
			least = took
			best = before.Add(took / 2).Add(time.Duration(at - mono))
		}
	}
	return best, nil
}
