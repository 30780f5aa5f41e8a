package dataplane

import (
	"runtime/metrics"

	"gswitch/dataplane/xsk"
	"gswitch/frame"
	"gswitch/histogram"
)

// Stats is a snapshot of an engine. It shares nothing with the engine.
type Stats struct {
	Now        frame.Time
	Chunks     int  // frames of the arena
	ChunkSize  int  // bytes
	Captures   int  // that run
	FreeChunks int  // of these, in the depot and in the workers' pools
	HugePages  bool // the arena lies in huge pages
	Workers    []WorkerStats
	Ports      []PortStats
	GC         GCStats
}

// WorkerStats count what one worker did since it started. Times are those of
// the nodes (Config.Dilation).
type WorkerStats struct {
	Name       string
	Poll       PollMode
	Pin        bool
	CPU        int        // where Pin
	Running    frame.Time // since the thread started
	Busy       frame.Time // of that, in loops that moved frames
	Last       frame.Time // when its last loop began
	Loops      uint64
	IdleLoops  uint64              // loops that moved no frame
	MaxLoop    frame.Time          // the longest loop that moved frames: how long a frame may have waited for the worker
	Stopped    frame.Time          // for how long the clock was stopped, see WorkerConfig.Step; not part of Running
	StoppedMax frame.Time          // at once
	Sleeps     uint64              // calls of ppoll
	Wakeups    uint64              // of these, ended by another worker or the control plane
	Vectors    [vector + 1]uint64  // received vectors by their number of frames
	Lateness   histogram.Histogram // nanoseconds from the instant of a node's timer to the loop that served it
	// FrameLateness is the time from the instant at which a frame's last bit
	// reaches the end of its emulated cable to the loop that gave it to the
	// device, in nanoseconds: of ports that are rated or have a delay.
	FrameLateness histogram.Histogram
	// Transit is the time from the loop that gave a frame to the device of a port
	// to the loop in which its far end received it, in nanoseconds, of samples:
	// where Engine.Measure asked for it.
	Transit histogram.Histogram
	// Adoption is for how long the worker's thread ran to take over a change of a node,
	// such as another configuration, in nanoseconds: what frames wait for then, beyond
	// what others have of the processor. It is not dilated.
	Adoption   histogram.Histogram
	Kicks      uint64 // transmit system calls for the worker's ports
	KickFrames uint64 // descriptors that the kernel took in them; over Kicks: per call
	FreeChunks int    // in the worker's own pool
	Nodes      int
	Ports      int
}

// BusyShare returns the share of its time in which the worker moved frames.
func (s *WorkerStats) BusyShare() float64 {
	if s.Running == 0 {
		return 0
	}
	return float64(s.Busy) / float64(s.Running)
}

// PortCounters count frames between a node and its port, and what the port's
// rings report. The node counts bytes.
type PortCounters struct {
	RxFrames  uint64
	TxFrames  uint64
	TxDropped uint64 // frames lost below the node: the device went away or refused them
	TxTaken   uint64 // frames that the device took
	TxWaiting uint64 // not a counter: frames that are below the node and not yet at the device

	// TxFrames and Faults.Duplicated together are TxTaken, TxWaiting, TxDropped
	// and what Faults says was lost.
	Faults FaultCounters

	// XDP, of a node with a clock: frames of PTP that the XDP program has stamped, and
	// those for whose stamp the driver left no room. Of the first those that have the
	// instant at which the hardware saw them.
	Stamped, Unstamped, StampedByNIC uint64

	// XDP: the port's sockets and XDP_STATISTICS.
	Kicks         uint64 // transmit system calls
	KickFrames    uint64 // descriptors that the kernel took in them
	KickAgain     uint64 // of these calls, ended at the budget or at a full device queue
	KickDrops     uint64 // of these calls, ended because the device dropped a frame
	KickNoMemory  uint64 // of these calls, ended because the kernel had no memory
	RxWakeups     uint64 // receive system calls
	RxDropped     uint64 // frames too large for a chunk, or otherwise not taken
	RxRingFull    uint64 // frames dropped at a full receive ring: the worker was too slow
	FillRingEmpty uint64 // times that the kernel found no chunk to receive into
	RxInvalid     uint64 // descriptors of the fill ring that the kernel refused
	TxInvalid     uint64 // frames or descriptors that cannot be sent
	TxRingEmpty   uint64 // times that the kernel found nothing to send
}

// PortStats is what is known of a port.
type PortStats struct {
	Name        string
	Number      uint16
	Worker      int
	Kind        Kind
	Up          bool
	State       string // "up", or "down: " and why
	Interface   string // XDP
	NetNS       string
	IfIndex     int
	MAC         string
	MTU         int
	Queues      []int
	Mode        xsk.Mode // what was got, AutoMode while down
	ModeWhy     string   // why not a better one
	TxDepth     int      // frames that may wait below the node
	TxBudget    int      // XDP: frames that one transmit call sends at most
	MultiBuffer bool     // XDP: a frame may come in several chunks
	BusyPoll    bool     // XDP: the worker polls the driver
	Setup       []string // what was changed on the interface for the switch
	Warnings    []string // what on the other end of the cable would break traffic
	Reopened    uint64   // how often the interface was lost and taken back
	Faulty      bool     // faults are set, or the link is cut
	Wire        string
	InputEnded  bool // Pcap: the input file has been read to its end
	PortCounters
}

// GCStats report the garbage collector of the process, which the forwarding
// path should never make work.
type GCStats struct {
	Cycles    uint64
	Pauses    uint64  // stop-the-world pauses
	PauseMax  float64 // seconds, upper bound of the longest so far
	HeapBytes uint64  // live and not yet collected objects
}

func readGC() GCStats {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/sched/pauses/total/gc:seconds"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(s)
	g := GCStats{Cycles: s[0].Value.Uint64(), HeapBytes: s[2].Value.Uint64()}
	h := s[1].Value.Float64Histogram()
	for i, n := range h.Counts {
		if n > 0 {
			g.Pauses += n
			g.PauseMax = h.Buckets[i+1]
		}
	}
	return g
}
