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
	Captures   int  // number of running captures
	FreeChunks int  // of these, in the depot and in the workers' pools
	HugePages  bool // the arena is in huge pages
	Workers    []WorkerStats
	Ports      []PortStats
	GC         GCStats
}

// WorkerStats count what one worker has done since it started. Times are in the nodes'
// time (Config.Dilation).
type WorkerStats struct {
	Name       string
	Poll       PollMode
	Pin        bool
	CPU        int        // if Pin
	Running    frame.Time // since the thread started
	Busy       frame.Time // of that, in loops that moved frames
	Last       frame.Time // when its last loop began
	Loops      uint64
	IdleLoops  uint64              // loops that moved no frame
	MaxLoop    frame.Time          // the longest loop that moved frames: how long a frame may have waited for the worker
	Stopped    frame.Time          // time for which the clock was stopped, see WorkerConfig.Step; not part of Running
	StoppedMax frame.Time          // longest single stop
	Sleeps     uint64              // calls of ppoll
	Wakeups    uint64              // of these, ended by another worker or the control plane
	Vectors    [vector + 1]uint64  // received vectors by their number of frames
	Lateness   histogram.Histogram // nanoseconds from the instant of a node's timer to the loop that served it
	// FrameLateness is the time from the instant at which a frame's last bit reaches the
	// end of its emulated cable to the loop that gave it to the device, in nanoseconds,
	// at ports that are rated or have a delay.
	FrameLateness histogram.Histogram
	// Transit is the time from the loop that gave a frame to the device of a port to the
	// loop in which the far end received it, in nanoseconds, sampled on links for which
	// Engine.Measure was called.
	Transit histogram.Histogram
	// Adoption is how long the worker's thread ran to adopt a change of a node, such as a
	// new configuration, in nanoseconds. Frames wait for that time, plus the time in
	// which other threads have the processor. It is not dilated.
	Adoption   histogram.Histogram
	Kicks      uint64 // transmit system calls for the worker's ports
	KickFrames uint64 // descriptors that the kernel took in them; divided by Kicks: batch size
	FreeChunks int    // in the worker's own pool
	NoChunk    uint64 // allocations of its nodes, ports and captures that found no chunk
	Nodes      int
	Ports      int
}

// BusyShare returns the share of time in loops that moved frames.
func (s *WorkerStats) BusyShare() float64 {
	if s.Running == 0 {
		return 0
	}
	return float64(s.Busy) / float64(s.Running)
}

// PortCounters count frames between a node and its port, and what the port's rings
// report. The node counts bytes.
type PortCounters struct {
	RxFrames  uint64
	TxFrames  uint64
	TxDropped uint64 // frames lost below the node: the device was closed or refused them
	TxTaken   uint64 // frames that the device accepted
	TxWaiting uint64 // not a counter: frames below the node that the device has not yet accepted

	// TxFrames plus Faults.Duplicated is TxTaken plus TxWaiting plus TxDropped plus the
	// losses in Faults.
	Faults FaultCounters

	// XDP, at a node with a clock: PTP frames that the XDP program has stamped, those for
	// whose stamp the driver left no room, and the stamped frames that have the
	// hardware's time.
	Stamped, Unstamped, StampedByNIC uint64

	// XDP: the port's sockets and XDP_STATISTICS.
	Kicks         uint64 // transmit system calls
	KickFrames    uint64 // descriptors that the kernel took in them
	KickAgain     uint64 // of these calls, ended at the budget or at a full device queue
	KickDrops     uint64 // of these calls, ended because the device dropped a frame
	KickNoMemory  uint64 // of these calls, ended because the kernel had no memory
	RxWakeups     uint64 // receive system calls
	RxDropped     uint64 // frames too large for a chunk, or not accepted for another reason
	RxRingFull    uint64 // frames dropped at a full receive ring: the worker was too slow
	FillRingEmpty uint64 // times that the kernel found no chunk to receive into
	RxInvalid     uint64 // descriptors of the fill ring that the kernel refused
	TxInvalid     uint64 // frames or descriptors that cannot be sent
	TxRingEmpty   uint64 // times that the kernel found nothing to send
}

// PortStats is the state of a port.
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
	Mode        xsk.Mode // the mode obtained; AutoMode while down
	ModeWhy     string   // why not a better mode
	TxDepth     int      // frames that may wait below the node
	TxBudget    int      // XDP: frames that one transmit call sends at most
	MultiBuffer bool     // a frame may span several chunks
	BusyPoll    bool     // XDP: the worker polls the driver
	Setup       []string // settings that the switch has changed on the interface
	Warnings    []string // settings of the other end that would break traffic
	Reopened    uint64   // how often the interface was lost and reopened
	Faulty      bool     // faults are set, or the link is cut
	Wire        string
	InputEnded  bool // Pcap: the input file has been read to its end
	PortCounters
}

// GCStats report the garbage collector of the process. The forwarding path should never
// create work for it.
type GCStats struct {
	Cycles    uint64
	Pauses    uint64  // stop-the-world pauses
	PauseMax  float64 // seconds, upper bound of the longest so far
	HeapBytes uint64  // objects that are live or not yet collected
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
