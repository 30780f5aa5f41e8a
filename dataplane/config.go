package dataplane

import (
	"fmt"
	"log/slog"
	"time"

	"gswitch/bpf"
	"gswitch/dataplane/xsk"
	"gswitch/frame"
)

// Config of an Engine. The zero value of each field is a sensible default.
type Config struct {
	Chunks    int            // frames of the arena; 0 is 32768
	ChunkSize int            // bytes of a chunk: 2048 (default) or 4096
	Workers   []WorkerConfig // empty is one worker with defaults
	HugePages bool           // back the arena by 2 MiB pages where enough are reserved

	// Dilation slows the clock of the nodes: one nanosecond of theirs takes so
	// many real ones. To the nodes a link is then so many times as fast as it
	// really is, and so is the machine. 0 and 1 are real time. What is given
	// and given as a frame.Time is time of the nodes, except
	// WorkerConfig.IdleSpin.
	Dilation int64
	// Held lets time stand at 0 after Start, while ports come up, until
	// Release.
	Held bool
	// At is where a held clock stands instead, of an engine that is never
	// released: one that shows what was.
	At frame.Time

	// Supervise is how often ports that are down are tried again and network
	// namespaces are checked, besides the kernel's own notifications; 0 is
	// 250 ms.
	Supervise time.Duration

	Logger *slog.Logger // nil is slog.Default()
}

// WorkerConfig describes one worker.
type WorkerConfig struct {
	Name string   // of its thread, up to 15 bytes; empty is "gsw-" and its index
	Pin  bool     // run on CPU only
	CPU  int      //
	Poll PollMode //

	// First lets the worker's thread count more than ordinary ones on its
	// processor, where the system allows it. It is no real-time policy: a worker
	// that does not keep up would keep the processor for good.
	First bool

	// Step, where it is not 0, is the most by which time goes on from one loop
	// to the next while something is due. If more has passed, as when the worker
	// was kept from its processor, the clock of the engine stands for the rest
	// (WorkerStats.Stopped): what is due one after the other happens one after
	// the other, not in a burst, and nodes do not notice that the worker was
	// late. Frames that come from elsewhere do, so this is for engines whose
	// nodes send frames to each other only; and for those with one worker.
	Step frame.Time

	// IdleSpin is how long an adaptive worker spins without traffic before it
	// sleeps, in real time; 0 is 100 us.
	IdleSpin frame.Time
}

// PollMode says what a worker does when there is nothing to do.
type PollMode uint8

const (
	Adaptive PollMode = iota // spin while busy and for IdleSpin after, then sleep in ppoll
	Spin                     // spin always, without system calls while idle: lowest latency, one whole core
	Sleep                    // sleep whenever there is nothing to do: least CPU, highest latency
)

var pollNames = [...]string{Adaptive: "adaptive", Spin: "spin", Sleep: "sleep"}

// String returns "adaptive", "spin" or "sleep".
func (m PollMode) String() string { return nameOf(pollNames[:], int(m)) }

// ParsePollMode is the inverse of PollMode.String.
func ParsePollMode(s string) (PollMode, error) {
	i, err := indexOf(pollNames[:], s, "poll mode")
	return PollMode(i), err
}

// defaultTxDepth is PortSpec.TxDepth where it is 0.
const defaultTxDepth = 256

// Kind of a port.
type Kind uint8

const (
	XDP  Kind = iota // a network interface over AF_XDP
	Wire             // a link in memory to the other port of this engine with the same wire name
	Pcap             // reads frames from a capture file and writes those sent to another
	Null             // receives nothing and discards what is sent
	Tap              // an interface that the port makes in a kernel
)

var kindNames = [...]string{XDP: "xdp", Wire: "wire", Pcap: "pcap", Null: "null", Tap: "tap"}

// String returns "xdp", "wire", "pcap", "null" or "tap".
func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// PortSpec describes a port.
type PortSpec struct {
	Name string // shown and logged; empty is the interface, the wire, or the kind with the number
	Kind Kind

	// XDP. The queues of an interface may be divided between several ports
	// (AddPort once per worker): the program is attached once.
	Interface string
	NetNS     string        // name under /run/netns, or a path; empty is the process's own
	Queues    []int         // receive queues of this port; empty is queue 0. Frames are sent through the first
	Mode      xsk.Mode      // pins a step of the mode ladder; Auto takes the best that works
	Filter    bpf.Filter    // which frames the switch takes; the rest goes to the kernel
	RingSize  int           // entries of the receive and transmit rings, a power of two; 0 is 2048
	BusyPoll  int           // frames that a receive call may take in the driver's own context where the driver can; 0 leaves it to interrupts
	Wait      time.Duration // how long AddPort waits for the interface to appear; 0 fails at once
	Optional  bool          // AddPort succeeds without the interface: the port is down until it appears

	// Wire.
	Wire string

	// Tap, besides Interface and NetNS.
	Tap *TapSpec

	// Pcap. Either file may be empty.
	In       string // pcap or pcapng to receive from; PortStats.InputEnded reports its end
	Out      string // pcapng file to write what is sent to; an existing file is replaced
	MaxSpeed bool   // ignore the times in the file

	// Rated says that the node gives the port a link rate: what it sends
	// reaches the device when its last bit would have left (Meta.Span after
	// Meta.Depart), as on a link that stores and forwards.
	Rated bool
	// Delay is the propagation delay of an emulated cable at this port, on top
	// of that.
	Delay frame.Time
	// DelayFrames is how many frames the cable holds; 0 is 4096.
	DelayFrames int

	// Timing says that the node has a clock that is kept by PTP (IEEE 1588) at this
	// port. XDP: what arrives bears Meta.Stamp, the instant at which the kernel ran
	// the program for it, where the driver has room for that, or the one at which the
	// hardware saw it, where the driver says that (NICClock). What leaves has the time
	// that it took from the instant that the node wrote into it to the device in its
	// correction, as of a transparent clock.
	Timing bool

	// Completes says that the node fills in the checksums that the kernel at
	// the other end of a veth leaves to a device: there is no need to warn.
	Completes bool

	// TxDepth bounds the frames that wait below the node, in the transmit
	// ring, so that queues form in the node. 0 is 256; a port with an emulated
	// rate wants 64.
	TxDepth int
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}

func indexOf(names []string, s, what string) (int, error) {
	for i, n := range names {
		if n == s {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s %q: must be one of %q", what, s, names)
}
