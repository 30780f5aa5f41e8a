package vnet

import (
	"gswitch/fabric"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/sim"
)

// Engine is what a network needs of what steps its nodes: virtual time
// (package sim) or real frames (fabric/live). Its callbacks (At, Every, the
// after of AddNode) run one at a time on the thread that steps the hosts, and
// may read and change hosts, post messages and call the methods below. Of
// switches they read what Network returns, which is safe between threads.
type Engine interface {
	// Virtual says that frames are lengths with headers and that time stands
	// while nobody calls Run. Otherwise frames are real, every byte of them.
	Virtual() bool

	// Pool is where a node of the topology has its frames from.
	Pool(node int) *frame.Pool
	// AddNode adds what a node of the topology is and returns the number by
	// which the engine knows it. after is called whenever the node was
	// stepped, and may be nil; switches have none.
	AddNode(node int, n frame.Stepper, after func(now frame.Time)) int
	// Connect joins two ports, whose rates are those of their nodes.
	Connect(a int, pa uint16, b int, pb uint16, l sim.Link) sim.LinkID

	// Now is the time of the nodes.
	Now() frame.Time
	// LocalTime is the own time of a node (by the engine's number), that of its
	// oscillator, at an instant of the engine. Callbacks ask for their own.
	LocalTime(node int, at frame.Time) frame.Time
	// At calls fn at t, or now if t has passed. With Every, it is for use
	// before the first Run and in callbacks.
	At(t frame.Time, fn func(now frame.Time))
	// Every calls fn at first and then once in each period.
	Every(first, period frame.Time, fn func(now frame.Time))
	// Poke says that a callback changed a node.
	Poke(node int)
	// Apart says that a node (by the engine's number) is not stepped by the
	// thread of the callbacks. What they want to know of it is published by
	// the function that EveryOn calls on the node's own thread.
	Apart(node int) bool
	EveryOn(node int, first, period frame.Time, fn func(now frame.Time))

	// Run returns when time has come to the given instant, or with the first
	// error. On real frames the first call starts time, which then goes on
	// between calls.
	Run(until frame.Time) error
	// Stop ends Run with err. It may be called by callbacks.
	Stop(err error)
	// Halt ends time for good. From then on the caller may read every node.
	Halt() error
	// Close frees what the engine holds, nodes' frames included, and reports
	// frames that are missing.
	Close() error

	// Faults, as sim.Engine describes them. Those that an engine cannot carry
	// out are an error that says so.
	Fault(id sim.LinkID, way sim.Way, c fault.Config) error
	SetLink(id sim.LinkID, up bool) error
	Pause(node int, until frame.Time) error
	Slow(node int, gap frame.Time) error
	Reboot(node int, down frame.Time) error
	SetClock(node int, drift int64, step frame.Time) error
	Storm(id sim.LinkID, way sim.Way, s sim.Storm) error

	// Stats counts frames on links. It may be called from any goroutine
	// between Runs; on real frames it is complete after Halt.
	Stats() sim.Stats
	// Digest is that of a run in virtual time, "" of one on real frames.
	Digest() string
}

// EngineSpec is what an engine is made for.
type EngineSpec struct {
	Plan    *fabric.Plan
	Chunks  int    // frames that can be in the network at once
	Frame   int    // bytes of the largest frame, link overhead not included
	Headers int    // bytes of headers that a frame has at most
	Seed    uint64 // of the engine's faults
	Parts   []int  // by node: in virtual time, which of the parts that run side by side has it

	BaseRTT  frame.Time // T of congestion control
	Overhead uint32     // of a frame on a link, beyond its bytes
}

// EngineMaker makes the engine of a network.
type EngineMaker func(spec *EngineSpec) (Engine, error)
