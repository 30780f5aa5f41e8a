package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gswitch/cc"
	"gswitch/command"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
)

// Change is a change of a host by its daemon, apart from its frames and its link:
// StartTransfer, EndTransfer, ServeRegion, Configure, Shutdown, or one of its NIC.
// Agent.Command turns it into a command.
type Change interface {
	// Encode appends the change to b. DecodeChange is its inverse.
	Encode(b []byte) []byte
	do(now frame.Time, a *Agent)
}

// StartTransfer starts a transfer: Agent.Start.
type StartTransfer struct {
	Transfer *Transfer
	Refused  error // set when it is done: why the transfer did not start
}

// EndTransfer ends a transfer early, by its number: Agent.Abort.
type EndTransfer struct{ Number uint64 }

// ServeRegion allows other hosts to open queue pairs, on memory of the region's size that
// holds the pattern: Agent.Serve.
type ServeRegion struct {
	Region *Region // nil: no longer allow it
	// Again: it is the region that was served last, with what has been written to it
	// since.
	Again   bool
	Refused error // set when it is done
}

// Configure replaces the configuration: Agent.Reconfigure.
type Configure struct {
	Config *Config
	// Document is the text that Config was made from. DecodeChange returns only the
	// document: decoding it must give the same Config.
	Document []byte
	Refused  error // set when it is done
}

// OfNIC is a change of the host's NIC.
type OfNIC struct{ hostnic.Change }

// Shutdown is Agent.Shutdown.
type Shutdown struct{}

// bound is a change of a host.
type bound struct {
	Change
	a *Agent
}

// Do implements frame.Command.
func (c bound) Do(now frame.Time) { c.do(now, c.a) }

// Command turns a change into a command, which is carried out between two steps.
func (a *Agent) Command(c Change) frame.Command { return bound{c, a} }

func (c *StartTransfer) do(now frame.Time, a *Agent) { c.Refused = a.Start(now, c.Transfer) }

func (c EndTransfer) do(now frame.Time, a *Agent) {
	for _, t := range a.transfers {
		if t.Number == c.Number {
			a.Abort(now, t)
		}
	}
}

func (c *ServeRegion) do(_ frame.Time, a *Agent) {
	r := c.Region
	if c.Again && a.last != nil {
		r = a.last
	}
	c.Refused = a.Serve(r)
}

func (c *Configure) do(now frame.Time, a *Agent) { c.Refused = a.Reconfigure(now, c.Config) }

func (c OfNIC) do(now frame.Time, a *Agent) { c.Do(now, a.nic) }

func (Shutdown) do(now frame.Time, a *Agent) { a.Shutdown(now) }

// The first byte of an encoded change; others are of the NIC.
const (
	startTransferKind = 1
	endTransferKind   = 2
	serveRegionKind   = 3
	configureKind     = 4
	shutdownKind      = 5
)

// Flags of encoded transfers and regions.
const (
	traced      = 1
	regionThere = 1
	regionAgain = 2
)

// Encode implements Change. It does not include what a transfer sends: Transfer.Allocate
// makes that.
func (c *StartTransfer) Encode(b []byte) []byte {
	t := c.Transfer
	b = command.AppendAddr(append(b, startTransferKind), t.To)
	b = append(b, byte(t.Service), byte(t.Verb), t.Class, byte(t.INT))
	flags, recovery := byte(0), byte(0)
	if t.Trace {
		flags |= traced
	}
	if t.Recovery != nil {
		recovery = t.Recovery.Code + 1
	}
	b = append(b, flags, recovery)
	for _, v := range []uint64{t.Size, uint64(t.Count), uint64(t.Depth), uint64(t.Interval), uint64(t.Cap), math.Float64bits(t.Limit)} {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendUvarint(command.AppendString(b, t.CC), uint64(len(t.Options)))
	for _, name := range slices.Sorted(maps.Keys(t.Options)) {
		b = command.AppendString(command.AppendString(b, name), t.Options[name])
	}
	return b
}

// Encode implements Change.
func (c EndTransfer) Encode(b []byte) []byte {
	return binary.AppendUvarint(append(b, endTransferKind), c.Number)
}

// Encode implements Change.
func (c *ServeRegion) Encode(b []byte) []byte {
	flags, size := byte(0), 0
	if c.Region != nil {
		flags, size = regionThere, c.Region.size()
	}
	if c.Again {
		flags |= regionAgain
	}
	return binary.AppendUvarint(append(b, serveRegionKind, flags), uint64(size))
}

// Encode implements Change.
func (c *Configure) Encode(b []byte) []byte { return append(append(b, configureKind), c.Document...) }

// Encode implements Change.
func (Shutdown) Encode(b []byte) []byte { return append(b, shutdownKind) }

// Limits of a transfer: the memory for its messages and for what is kept of each.
const (
	MaxSize  = 1 << 30 // bytes of a message
	MaxCount = 4 << 20 // messages
)

// Limits of what is decoded: no daemon asks for more.
const (
	largestRegion = 1 << 34
	longestWord   = 256 // letters of an option
	mostOptions   = 64
)

// DecodeChange is the inverse of Change.Encode. It returns Configure without its Config,
// and transfers and regions without memory: Allocate allocates it.
func DecodeChange(b []byte) (Change, error) {
	if len(b) == 0 {
		return nil, errors.New("a change of a host without a kind")
	}
	if hostnic.IsChange(b) {
		c, err := hostnic.DecodeChange(b)
		if err != nil {
			return nil, err
		}
		return OfNIC{c}, nil
	}
	d := command.Decoder{B: b[1:]}
	var c Change
	switch b[0] {
	case startTransferKind:
		c = &StartTransfer{Transfer: decodeTransfer(&d)}
	case endTransferKind:
		c = EndTransfer{d.Uvarint(math.MaxUint64)}
	case serveRegionKind:
		flags, size := d.Byte(regionThere|regionAgain), d.Uvarint(largestRegion)
		s := &ServeRegion{Again: flags&regionAgain != 0}
		if flags&regionThere != 0 {
			s.Region = &Region{bytes: int(size)}
		} else if size != 0 || s.Again {
			d.Fail()
		}
		c = s
	case configureKind:
		return &Configure{Document: d.B}, nil
	case shutdownKind:
		c = Shutdown{}
	default:
		return nil, fmt.Errorf("a change of a host of the unknown kind %d", b[0])
	}
	if err := d.Err(fmt.Sprintf("a change of a host of kind %d", b[0])); err != nil {
		return nil, err
	}
	return c, nil
}

func decodeTransfer(d *command.Decoder) *Transfer {
	t := &Transfer{To: d.Addr(), Service: Service(d.Byte(byte(Probe))), Verb: hostnic.Verb(d.Byte(byte(hostnic.Read))), Class: d.Byte(7),
		INT: inband.Mode(d.Byte(math.MaxUint8)), Trace: d.Byte(traced) != 0}
	if code := d.Byte(math.MaxUint8); code > 0 {
		if t.Recovery = transport.ByCode(code - 1); t.Recovery == nil {
			d.Fail()
		}
	}
	t.Size, t.Count, t.Depth = d.Uvarint(MaxSize), int(d.Uvarint(MaxCount)), int(d.Uvarint(math.MaxInt32))
	t.Interval, t.Cap = frame.Time(d.Uvarint(math.MaxInt64)), uint32(d.Uvarint(math.MaxUint32))
	t.Limit = math.Float64frombits(d.Uvarint(math.MaxUint64))
	if !(t.Limit >= 0) { // NaN is not a rate either
		d.Fail()
	}
	t.CC = d.String(ccLen)
	for n := d.Uvarint(mostOptions); n > 0 && !d.Bad(); n-- {
		if t.Options == nil {
			t.Options = map[string]string{}
		}
		name := d.String(longestWord)
		t.Options[name] = d.String(longestWord)
	}
	return t
}

// Allocate gives a decoded change what its encoding does not have: the memory that it
// needs, so that a worker need not allocate it, and the factory of its congestion control.
func Allocate(c Change) (err error) {
	switch c := c.(type) {
	case *StartTransfer:
		t := c.Transfer
		if t.New, err = cc.Factory(t.CC, t.Options); err == nil {
			t.Allocate()
		}
	case *ServeRegion:
		if c.Region != nil {
			c.Region = NewRegion(c.Region.bytes)
		}
	case *Configure:
		if c.Config == nil {
			err = errors.New("a configuration of a host of which only the document is there")
		}
	}
	return err
}

// Allocate allocates the memory of a transfer: what it sends, which is the pattern, or
// the destination of reads, and what is kept of its messages.
func (t *Transfer) Allocate() {
	t.Data, t.Samples = make([]byte, t.Size), make([]Sample, 0, t.Count)
	if t.Trace {
		t.Paths = make([]inband.Path, 0, t.Count)
	}
	if t.Verb != hostnic.Read || t.Service != Memory {
		Fill(t.Data)
	}
}

// NewRegion returns memory of size bytes with the pattern.
func NewRegion(size int) *Region {
	r := &Region{Data: make([]byte, size)}
	Fill(r.Data)
	return r
}

// size returns the size of a region, including one that was decoded and has no memory
// yet.
func (r *Region) size() int { return max(len(r.Data), r.bytes) }
