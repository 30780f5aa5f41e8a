package vnet

import (
	"gswitch/fabric"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/sim"
)

// Engine steps the nodes of a network: in virtual time (package sim) or on real frames
// (fabric/live). Its callbacks (At, Every, and the function after of AddNode) run one at
// a time on the thread that steps the hosts. They may read and change hosts, post
// messages and call the methods below. Of switches they may read only what the methods of
// Network return, which are safe across threads.
type Engine interface {
	// Virtual reports whether frames consist of headers and a length only, and time
	// stands still outside Run. Otherwise frames are real, with every byte.
	Virtual() bool

	// Pool returns the pool from which a node of the topology allocates its frames.
	Pool(node int) *frame.Pool
	// AddNode adds a node of the topology and returns its number in the engine. after is
	// called each time the node has been stepped; it may be nil, and is for switches.
	AddNode(node int, n frame.Stepper, after func(now frame.Time)) int
	// Connect joins two ports. Their rates are those of their nodes.
	Connect(a int, pa uint16, b int, pb uint16, l sim.Link) sim.LinkID

	// Now returns the engine's time.
	Now() frame.Time
	// LocalTime returns the time that a node's own oscillator shows at an instant of the
	// engine. node is the engine's number. Callbacks may ask only for the node that they
	// are about.
	LocalTime(node int, at frame.Time) frame.Time
	// At calls fn at t, or now if t has passed. At and Every may be called before the
	// first Run and in callbacks.
	At(t frame.Time, fn func(now frame.Time))
	// Every calls fn at first and then once per period.
	Every(first, period frame.Time, fn func(now frame.Time))
	// Poke tells the engine that a callback has changed a node.
	Poke(node int)
	// Apart reports whether a node (by the engine's number) is stepped by another thread
	// than that of the callbacks. Such a node publishes its state for callbacks in the
	// function of EveryOn, which runs on the node's own thread.
	Apart(node int) bool
	EveryOn(node int, first, period frame.Time, fn func(now frame.Time))

	// Run returns when time reaches until, or with the first error. On real frames the
	// first call starts time, which then continues between calls.
	Run(until frame.Time) error
	// Stop ends Run with err. Callbacks may call it.
	Stop(err error)
	// Halt stops time for good. After that the caller may read every node.
	Halt() error
	// Close frees what the engine holds, including the frames of nodes, and returns an
	// error if frames are missing.
	Close() error

	// Faults are those of sim.Engine. An engine returns an error for those that it cannot
	// inject.
	Fault(id sim.LinkID, way sim.Way, c fault.Config) error
	SetLink(id sim.LinkID, up bool) error
	Pause(node int, until frame.Time) error
	Slow(node int, gap frame.Time) error
	Reboot(node int, down frame.Time) error
	SetClock(node int, drift int64, step frame.Time) error
	Storm(id sim.LinkID, way sim.Way, s sim.Storm) error

	// Stats counts frames on links. Any goroutine may call it between Runs. On real
	// frames it is complete only after Halt.
	Stats() sim.Stats
	// Digest returns the digest of a run in virtual time, "" on real frames.
	Digest() string
}

// EngineSpec describes what an engine must provide.
type EngineSpec struct {
	Plan    *fabric.Plan
	Chunks  int    // number of frames that can be in the network at once
	Frame   int    // bytes of the largest frame, without link overhead and what switches add
	Payload int    // of such a frame
	Headers int    // largest number of header bytes in a frame
	Seed    uint64 // for the engine's faults
	Parts   []int  // by node: the part that steps it; in virtual time parts run in parallel

	BaseRTT  frame.Time // T of congestion control
	Overhead uint32     // bytes that a frame occupies on a link beyond its own
}

// EngineMaker makes the engine of a network.
type EngineMaker func(spec *EngineSpec) (Engine, error)
