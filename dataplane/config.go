package dataplane

import (
	"fmt"
	"log/slog"
	"time"

	"gswitch/bpf"
	"gswitch/dataplane/xsk"
	"gswitch/frame"
)

// Config configures an Engine. The zero value of each field is a sensible default.
type Config struct {
	Chunks    int            // frames of the arena; 0 is 32768
	ChunkSize int            // bytes of a chunk: 2048 (default) or 4096
	Workers   []WorkerConfig // empty is one worker with defaults
	HugePages bool           // back the arena by 2 MiB pages where enough are reserved

	// Dilation slows the nodes' clock: one of their nanoseconds takes this many real
	// ones. To the nodes, links and the machine appear faster by this factor. 0 and 1 are
	// real time. Every frame.Time in arguments and results is the nodes' time, except
	// WorkerConfig.IdleSpin.
	Dilation int64
	// Held stops the clock at 0 after Start, while ports come up, until Release.
	Held bool
	// At is the time at which a held clock stands instead of 0. It is for an engine that
	// is never released and only shows a past state.
	At frame.Time

	// Supervise is the interval at which ports that are down are retried and network
	// namespaces are checked, in addition to the kernel's notifications; 0 is 250 ms.
	Supervise time.Duration

	Logger *slog.Logger // nil is slog.Default()
}

// WorkerConfig describes one worker.
type WorkerConfig struct {
	Name string   // of its thread, up to 15 bytes; empty is "gsw-" and its index
	Pin  bool     // run on CPU only
	CPU  int      //
	Poll PollMode //

	// First raises the priority of the worker's thread on its processor (a lower nice
	// value), if the system allows it. It is not a real-time policy: a worker that cannot
	// keep up would then keep the processor for good.
	First bool

	// Step, if not 0, bounds how far time advances from one loop to the next while
	// something is due. If more has passed, for instance because the worker was
	// preempted, the engine's clock is stopped for the rest (WorkerStats.Stopped). Events
	// that are due one after the other then happen one after the other, not in a burst,
	// and nodes do not notice that the worker was late. Frames that arrive from elsewhere
	// are still affected, so this is for engines with one worker whose nodes only send
	// frames to each other.
	Step frame.Time

	// IdleSpin is how long an adaptive worker spins without traffic before it sleeps, in
	// real time; 0 is 100 us.
	IdleSpin frame.Time
}

// PollMode is what a worker does when it has no work.
type PollMode uint8

const (
	Adaptive PollMode = iota // spin while busy and for IdleSpin after that, then sleep in ppoll
	Spin                     // always spin, without system calls while idle: lowest latency, uses a whole core
	Sleep                    // sleep whenever there is no work: least CPU, highest latency
)

var pollNames = [...]string{Adaptive: "adaptive", Spin: "spin", Sleep: "sleep"}

// String returns "adaptive", "spin" or "sleep".
func (m PollMode) String() string { return nameOf(pollNames[:], int(m)) }

// ParsePollMode is the inverse of PollMode.String.
func ParsePollMode(s string) (PollMode, error) {
	i, err := indexOf(pollNames[:], s, "poll mode")
	return PollMode(i), err
}

// defaultTxDepth is the default of PortSpec.TxDepth.
const defaultTxDepth = 256

// Kind is the kind of a port.
type Kind uint8

const (
	XDP  Kind = iota // a network interface over AF_XDP
	Wire             // a link in memory to the port of this engine with the same wire name
	Pcap             // receives frames from a capture file and writes the frames sent to another
	Null             // receives nothing and discards what is sent
	Tap              // an interface that the port creates in the kernel
)

var kindNames = [...]string{XDP: "xdp", Wire: "wire", Pcap: "pcap", Null: "null", Tap: "tap"}

// String returns "xdp", "wire", "pcap", "null" or "tap".
func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// PortSpec describes a port.
type PortSpec struct {
	Name string // for display and logs; empty is the interface, the wire, or the kind with the number
	Kind Kind

	// XDP. The queues of an interface may be divided among several ports (call AddPort
	// for each worker). The program is attached once.
	Interface string
	NetNS     string        // name under /run/netns, or a path; empty is the process's own
	Queues    []int         // receive queues of this port; empty is queue 0. Frames are sent through the first
	Mode      xsk.Mode      // restricts the modes to one; Auto takes the best that works
	Filter    bpf.Filter    // which frames the switch takes; the kernel gets the rest
	RingSize  int           // entries of the receive and transmit rings, a power of two; 0 is 2048
	BusyPoll  int           // frames that a receive call may process in the driver's own context, if the driver supports it; 0 leaves it to interrupts
	Wait      time.Duration // how long AddPort waits for the interface to appear; 0 fails at once
	Optional  bool          // AddPort succeeds without the interface: the port is down until it appears

	// Wire.
	Wire string

	// Tap, besides Interface and NetNS.
	Tap *TapSpec

	// Pcap. Either file may be empty.
	In       string // pcap or pcapng to receive from; PortStats.InputEnded reports its end
	Out      string // pcapng file for the frames sent; an existing file is replaced
	MaxSpeed bool   // ignore the time stamps in the file

	// Rated says that the node gives the port a link rate: a frame reaches the device
	// when its last bit would have left (Meta.Span after Meta.Depart), as on a
	// store-and-forward link.
	Rated bool
	// Delay is the propagation delay of an emulated cable at this port, in addition to
	// Rated.
	Delay frame.Time
	// DelayFrames is how many frames the cable can hold; 0 is 4096.
	DelayFrames int

	// Timing says that the node synchronises its clock by PTP (IEEE 1588) through this
	// port. With XDP, PTP frames that arrive carry in Meta.Stamp the time at which the
	// kernel ran the program for them, if the driver leaves room for it, or the time at
	// which the hardware received them, if the driver reports that (NICClock). In PTP
	// frames that leave, the correction is increased by the time from the instant that
	// the node wrote into the frame until the device gets it, as in a transparent clock.
	Timing bool

	// Completes says that the node completes the checksums that the kernel at the other
	// end of a veth leaves to the device. There is then no warning.
	Completes bool

	// TxDepth bounds the frames that wait below the node, in the transmit ring, so that
	// queues form in the node. 0 is 256. Use 64 for a port with an emulated rate.
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
