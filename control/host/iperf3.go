package host

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// The server side of iperf3's protocol over TCP, one test at a time. On the control
// connection a single byte is a state, and JSON is preceded by its length. Data
// connections send a cookie that says to which test they belong.

// States of a test, as iperf3 numbers them (iperf_api.h).
const (
	iperfStart         = 1
	iperfRunning       = 2
	iperfEnd           = 4
	iperfParams        = 9
	iperfStreams       = 10
	iperfResults       = 13
	iperfDisplay       = 14
	iperfDone          = 16
	iperfDenied        = 0xff
	iperfError         = 0xfe
	iperfUnimplemented = 13 // error: "not implemented yet"
)

const (
	cookieLen = 37
	// mostJSON and mostParallel bound the requests of a client.
	mostJSON     = 1 << 20
	mostParallel = 32
	// counted is the number of bytes that are written, and then counted, at once.
	counted = 16 << 10
	// stepTimeout is how long a client may be silent between the steps of a test, and
	// longestTest how long the test may take.
	stepTimeout = 30 * time.Second
	longestTest = 24 * time.Hour
)

// iperf is an iperf3 server.
type iperf struct {
	timeout time.Duration
	mu      sync.Mutex
	test    *iperfTest // in progress; nil: none
}

// iperfTest is a test.
type iperfTest struct {
	timeout time.Duration
	cookie  [cookieLen]byte
	control net.Conn
	params  iperfAsked
	came    chan net.Conn // data connections
	done    chan struct{} // closed at the end
}

// iperfAsked holds the relevant part of a client's request.
type iperfAsked struct {
	UDP           bool `json:"udp"`
	SCTP          bool `json:"sctp"`
	Reverse       bool `json:"reverse"`
	Bidirectional bool `json:"bidirectional"`
	Parallel      int  `json:"parallel"`
	Len           int  `json:"len"`
}

// iperfSummary holds the results that a server sends.
type iperfSummary struct {
	Total       float64       `json:"cpu_util_total"`
	User        float64       `json:"cpu_util_user"`
	System      float64       `json:"cpu_util_system"`
	Retransmits int           `json:"sender_has_retransmits"`
	Streams     []iperfStream `json:"streams"`
}

type iperfStream struct {
	ID          int     `json:"id"`
	Bytes       uint64  `json:"bytes"`
	Retransmits int     `json:"retransmits"`
	Jitter      float64 `json:"jitter"`
	Errors      int     `json:"errors"`
	Packets     int     `json:"packets"`
	Start       float64 `json:"start_time"`
	End         float64 `json:"end_time"`
}

// serve handles a connection, either control or data.
func (s *iperf) serve(c net.Conn) {
	var cookie [cookieLen]byte
	_ = c.SetDeadline(time.Now().Add(s.timeout)) // it never fails
	if _, err := io.ReadFull(c, cookie[:]); err != nil {
		c.Close()
		return
	}
	s.mu.Lock()
	t, mine := s.test, (*iperfTest)(nil)
	if t == nil {
		mine = &iperfTest{timeout: s.timeout, cookie: cookie, control: c, came: make(chan net.Conn), done: make(chan struct{})}
		s.test = mine
	}
	s.mu.Unlock()
	switch {
	case mine != nil:
		mine.run()
		s.mu.Lock()
		s.test = nil
		s.mu.Unlock()
	case bytes.Equal(t.cookie[:], cookie[:]):
		select {
		case t.came <- c:
			return
		case <-t.done:
		case <-time.After(s.timeout):
		}
	default:
		_, _ = c.Write([]byte{iperfDenied}) // another test is running
	}
	c.Close()
}

// run carries out a test. An error ends it: the client reports why.
func (t *iperfTest) run() {
	defer close(t.done)
	if t.say(iperfParams) != nil || t.read(&t.params) != nil {
		return
	}
	p := &t.params
	if p.UDP || p.SCTP || p.Bidirectional || p.Parallel < 1 || p.Parallel > mostParallel || p.Len < 1 {
		_, _ = t.control.Write([]byte{iperfError, 0, 0, 0, iperfUnimplemented, 0, 0, 0, 0})
		return
	}
	if t.say(iperfStreams) != nil {
		return
	}
	var data []net.Conn
	defer func() {
		for _, c := range data {
			c.Close()
		}
	}()
	for len(data) < p.Parallel {
		select {
		case c := <-t.came:
			data = append(data, c)
		case <-time.After(t.timeout):
			return
		}
	}
	if t.say(iperfStart) != nil || t.say(iperfRunning) != nil {
		return
	}
	if results, err := t.move(data); err == nil {
		t.finish(results)
	}
}

// move moves data until the client ends it.
func (t *iperfTest) move(data []net.Conn) (*iperfSummary, error) {
	began := time.Now()
	count := make([]atomic.Uint64, len(data))
	for i, c := range data {
		_ = c.SetDeadline(began.Add(longestTest)) // it never fails
		go t.stream(c, &count[i])
	}
	_ = t.control.SetDeadline(began.Add(longestTest))
	if err := t.expect(iperfEnd); err != nil {
		return nil, err
	}
	results := &iperfSummary{}
	for i := range data {
		id := 1 // iperf3 counts 1, 3, 4, 5 ...
		if i > 0 {
			id = i + 2
		}
		results.Streams = append(results.Streams, iperfStream{ID: id, Bytes: count[i].Load(), Retransmits: -1, End: time.Since(began).Seconds()})
	}
	return results, nil
}

// stream moves the data of one connection until it is closed.
func (t *iperfTest) stream(c net.Conn, count *atomic.Uint64) {
	b := make([]byte, min(t.params.Len, piece))
	move := c.Read
	if t.params.Reverse {
		move, b = c.Write, b[:min(len(b), counted)] // it is unknown how much of a partial write has been sent
	}
	for {
		n, err := move(b)
		count.Add(uint64(n))
		if err != nil {
			return
		}
		select {
		case <-t.done:
			return
		default:
		}
	}
}

// finish exchanges results.
func (t *iperfTest) finish(results *iperfSummary) {
	_ = t.control.SetDeadline(time.Now().Add(t.timeout))
	var theirs json.RawMessage // not used here
	if t.say(iperfResults) != nil || t.read(&theirs) != nil {
		return
	}
	text, _ := json.Marshal(results) // of numbers
	if _, err := t.control.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)); err != nil {
		return
	}
	if t.say(iperfDisplay) == nil {
		_ = t.expect(iperfDone) // closing is also a way in which the client ends it
	}
}

func (t *iperfTest) say(state byte) error {
	_, err := t.control.Write([]byte{state})
	return err
}

func (t *iperfTest) expect(state byte) error {
	var b [1]byte
	if _, err := io.ReadFull(t.control, b[:]); err != nil {
		return err
	}
	if b[0] != state {
		return fmt.Errorf("the client of iperf3 is in state %d, not %d", b[0], state)
	}
	return nil
}

// read reads JSON preceded by its length.
func (t *iperfTest) read(v any) error {
	var head [4]byte
	if _, err := io.ReadFull(t.control, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > mostJSON {
		return fmt.Errorf("the client of iperf3 says %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(t.control, text); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
