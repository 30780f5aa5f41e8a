// Package view is what one sees of a fabric while it runs, the same of real
// frames and of virtual time: its layout once, and a sample of its ports and
// flows as often as somebody looks. The terminal view and the web page draw
// samples; sources make them.
//
// Times are seconds of the nodes, rates bits per second, sizes bytes. Where a
// run is dilated (Layout.Scale), everything is as the nodes see it: a link of
// 100 Gb/s is one of 100 Gb/s, however long a frame really takes.
package view

import "context"

// Layout is what does not change.
type Layout struct {
	Name  string  `json:"name"`
	Title string  `json:"title,omitempty"`          // of the scenario, or what the fabric is
	On    string  `json:"on"`                       // sim, netns (real frames, one process), lab (daemons) or record
	Scale float64 `json:"scale"`                    // real seconds for each second of the nodes
	End   float64 `json:"end_seconds"`              // when a run is over at the latest, 0 unknown
	RTT   float64 `json:"base_rtt_seconds"`         // T, the round trip of the idle network; 0 unknown
	Bound float64 `json:"late_bound_seconds"`       // of Sample.Late, above which what is seen is not the network's; 0 none
	Took  float64 `json:"record_seconds,omitempty"` // of a record: its length, of which any instant can be asked for
	Nodes []Node  `json:"nodes"`
	Links []Link  `json:"links"`
}

// Node is a host or a switch.
type Node struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // host or switch
	Tier int    `json:"tier"` // distance from the hosts: 0 a host, 1 a switch with hosts
}

// Link joins two ports. Ports of a node are numbered from 0.
type Link struct {
	A     End     `json:"a"`
	B     End     `json:"b"`
	Rate  float64 `json:"rate_bps"` // 0: none
	Delay float64 `json:"delay_seconds"`
}

// End is a port of a node.
type End struct {
	Node int `json:"node"` // index in Layout.Nodes
	Port int `json:"port"`
}

// Sample is the state at an instant, and what happened since the last one.
type Sample struct {
	Time  float64 `json:"t"`
	Run   string  `json:"run,omitempty"` // the run of a scenario that is under way
	Done  bool    `json:"done,omitempty"`
	Ports []Port  `json:"ports"`            // of switches, and of hosts where they are known
	Flows []Flow  `json:"flows"`            // under way, those that move most first, at most MaxFlows
	Open  int     `json:"open"`             // how many there are
	Ended uint64  `json:"ended"`            // since the start
	Drops uint64  `json:"drops"`            // frames lost since the start, of all nodes
	Late  float64 `json:"late_p99_seconds"` // of real workers, 99th percentile; 0 in virtual time
	// Of links whose two ends are metered, what they lost since the start, those that
	// lost most first, at most MaxLosses.
	Losses []Loss `json:"losses,omitempty"`
	// Of packets that are traced by copies, the ways of those of which copies came last,
	// the newest first, at most MaxWays.
	Ways []Way `json:"ways,omitempty"`
}

// MaxWays bounds what a sample reports of packets that are traced.
const MaxWays = 32

// Way is the way of a packet.
type Way struct {
	Flow   string  `json:"flow"`             // addresses and ports
	ID     uint16  `json:"id"`               // identification of the IP packet
	Kind   string  `json:"kind"`             // delivered, dropped, lost or looped
	Nodes  []int   `json:"nodes"`            // that it is known to have come by, its source and, if it arrived, its destination among them
	First  float64 `json:"first_seconds"`    // when the first switch saw it
	Took   float64 `json:"took_seconds"`     // from there to the last switch
	Reason string  `json:"reason,omitempty"` // why it was dropped
}

// MaxLosses bounds what a sample reports of losses.
const MaxLosses = 256

// Loss is frames that a direction of a link lost for one cause.
type Loss struct {
	End            // that sent them
	Cause  string  `json:"cause"`
	Frames uint64  `json:"frames"`
	Last   float64 `json:"last_seconds"` // when the last of them was lost
}

// MaxFlows bounds what a sample reports of flows.
const MaxFlows = 64

// Port is one end of a link, looking out.
type Port struct {
	End
	Up     bool    `json:"up"`
	Sent   float64 `json:"sent_bps"`    // since the last sample, with the link's overhead
	Queue  uint64  `json:"queue_bytes"` // all classes
	Peak   uint64  `json:"peak_bytes"`  // largest depth that was seen since the last sample
	Drops  uint64  `json:"drops"`       // frames that its queues refused since the start; of a host, all that it lost
	Marks  uint64  `json:"marks"`       // ECN, since the start
	Pauses uint64  `json:"pauses"`      // times that it asked its neighbour to stop, since the start
	Paused uint8   `json:"paused"`      // bitmap of classes that its neighbour stopped
	Asked  uint8   `json:"asked"`       // bitmap of classes in which it stopped its neighbour
	Halted float64 `json:"halted"`      // share of the time since the last sample that its neighbour stopped it, in the class that was stopped most
	Class  []Class `json:"classes,omitempty"`
}

// Class is an egress queue that holds or has held something.
type Class struct {
	Class  int    `json:"class"`
	Queue  uint64 `json:"queue_bytes"`
	Peak   uint64 `json:"peak_bytes"` // since the start
	Frames uint64 `json:"frames"`     // sent since the start
	Drops  uint64 `json:"drops"`
	Marks  uint64 `json:"marks"`
}

// Flow is a connection that sends.
type Flow struct {
	ID      uint64             `json:"id"`
	Group   string             `json:"group,omitempty"`
	Src     int                `json:"src"` // node
	Dst     int                `json:"dst"`
	Path    []End              `json:"path,omitempty"` // egress ports of the switches on its way
	Control string             `json:"cc,omitempty"`
	Rate    float64            `json:"rate_bps"`    // that its congestion control allows
	Goodput float64            `json:"goodput_bps"` // acknowledged since the last sample
	Window  uint64             `json:"window_bytes"`
	Flight  uint64             `json:"in_flight_bytes"`
	Acked   uint64             `json:"acked_bytes"`
	Bytes   uint64             `json:"bytes"` // posted so far, 0 unknown
	Inside  map[string]float64 `json:"inside,omitempty"`
}

// Source is a fabric that can be viewed. Its methods may be called from any goroutine.
// While there is no request for a sample, none is taken.
type Source interface {
	// Layout returns the layout in force; it changes with the run.
	Layout() *Layout
	// Sample waits for the next sample, or for the end of ctx. The caller must
	// not change it. When there will be no more it returns the last one (nil
	// if there was none) with io.EOF, or with what went wrong.
	Sample(ctx context.Context) (*Sample, error)
}
