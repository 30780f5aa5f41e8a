package collect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"gswitch/wire"
)

// Kinds of events.
const (
	Loss  = "loss"  // packets of one flow that a link lost, with the cause
	Lossy = "lossy" // packets of a batch that a link lost, reported as soon as both of its ends have reported the batch
	Trace = "trace" // a packet that did not reach its destination, or whose trace was requested
	Pause = "pause" // a pause that a switch saw or sent
	Flows = "flow"  // what slots of time show about a flow
)

// Kinds are all kinds of events.
var Kinds = []string{Loss, Lossy, Trace, Pause, Flows}

// Event is an event in the network. Fields that are unknown are empty.
type Event struct {
	Seq   uint64    `json:"-"`  // number in the stream, if it was read from there
	ID    string    `json:"id"` // the same in all collectors
	Kind  string    `json:"kind"`
	At    time.Time `json:"at"`             // of the first packet; lossy: when the batch began
	Until time.Time `json:"until"`          // of the last one; lossy: when the batch was over
	Known time.Time `json:"known,omitzero"` // when the collector had the report that shows it
	// What is the cause of a loss (congestion, blackhole, random, loop, unknown), "lost"
	// for a lossy link, the outcome of a traced packet (delivered, dropped, lost,
	// looped), what a neighbour was asked to do (pause, resume), or what happened to a
	// flow (loss, blackhole, loop).
	What   string `json:"what"`
	Where  string `json:"where"`            // loss, lossy: link; trace: switch that dropped it, or that saw it last; pause: sender of the pause; flow: link, or switch whose tables drop it or where the loop starts
	Toward string `json:"toward,omitempty"` // trace: node that should have seen it next; pause: node that is paused
	Reason string `json:"reason,omitempty"` // trace: reason of a drop, as the switch reports it; flow: the flow, with hashes of the addresses for IPv6
	Path   string `json:"path,omitempty"`   // trace: switches, in order; flow: those of a loop
	Times  string `json:"times,omitempty"`  // trace: arrival at each switch of path, in ns since the arrival at the first, by their clocks

	Src      netip.Addr `json:"src,omitzero"`
	Dst      netip.Addr `json:"dst,omitzero"`
	SrcPort  uint16     `json:"src_port,omitempty"`
	DstPort  uint16     `json:"dst_port,omitempty"`
	Protocol uint8      `json:"protocol,omitempty"`
	Packets  uint64     `json:"packets,omitempty"`
	Classes  uint8      `json:"classes,omitempty"` // pause: bitmap
}

// name sets the name of an event, derived from what identifies it.
func (e *Event) name(parts ...any) {
	h := sha256.New()
	fmt.Fprintln(h, e.Kind)
	fmt.Fprintln(h, parts...)
	e.ID = hex.EncodeToString(h.Sum(nil)[:12])
}

// Flow formats the flow of an event, "" if it has none.
func (e *Event) Flow() string {
	if !e.Src.IsValid() {
		return ""
	}
	proto := map[uint8]string{wire.ProtoTCP: "tcp", wire.ProtoUDP: "udp", wire.ProtoICMP: "icmp"}[e.Protocol]
	if proto == "" {
		proto = fmt.Sprintf("protocol %d", e.Protocol)
	}
	if e.SrcPort == 0 && e.DstPort == 0 {
		return proto + " " + e.Src.String() + " > " + e.Dst.String()
	}
	return proto + " " + netip.AddrPortFrom(e.Src, e.SrcPort).String() + " > " + netip.AddrPortFrom(e.Dst, e.DstPort).String()
}

// String formats an event as one line.
func (e *Event) String() string {
	s := []string{e.At.Format("2006-01-02 15:04:05.000000"), e.Kind, e.What, e.Where}
	if e.Toward != "" {
		s = append(s, "towards "+e.Toward)
	}
	if e.Reason != "" {
		s = append(s, "("+e.Reason+")")
	}
	if f := e.Flow(); f != "" {
		s = append(s, f)
	}
	if e.Packets > 1 {
		s = append(s, fmt.Sprintf("%d packets", e.Packets))
	}
	if e.Path != "" {
		s = append(s, "by "+e.Path)
	}
	return strings.Join(s, " ")
}
