package pipeline

import (
	"strconv"
	"strings"
)

// Op is a set of things that an ACL entry does to a frame.
type Op uint16

const (
	OpPermit   Op = 1 << iota // let it pass (says so for the reader; no other op implies a drop)
	OpDrop                    // drop it
	OpSetClass                // traffic class := Action.Class
	OpSetDSCP                 // DSCP := Action.DSCP
	OpSetPCP                  // PCP of the VLAN tag := Action.PCP
	OpPolice                  // drop what exceeds meter Action.Meter
	OpCount                   // count frames and bytes under the entry's id
	OpMirror                  // copy to mirror session Action.Session
	OpRedirect                // send to Action.Port instead of looking up a destination
)

// Action is what an ACL entry does, with parameters. It is 16 bytes and is
// copied by value. A parameter whose op is not set is zero.
type Action struct {
	Ops     Op
	Class   uint8  // 0..7
	DSCP    uint8  // 0..63
	PCP     uint8  // 0..7
	_       uint8  // keeps the 16-bit fields aligned
	Port    uint16 // OpRedirect
	Session uint16 // OpMirror
	_       uint16
	Meter   uint32 // OpPolice: index of the meter
}

// Has reports whether all ops of o are set.
func (a Action) Has(o Op) bool { return a.Ops&o == o }

// String shows the action in the order in which ops apply, such as
// "set-class 3, police 7, count".
func (a Action) String() string {
	var parts []string
	add := func(o Op, name string, param ...uint64) {
		if a.Ops&o == 0 {
			return
		}
		for _, p := range param {
			name += " " + strconv.FormatUint(p, 10)
		}
		parts = append(parts, name)
	}
	add(OpPermit, "permit")
	add(OpDrop, "drop")
	add(OpSetClass, "set-class", uint64(a.Class))
	add(OpSetDSCP, "set-dscp", uint64(a.DSCP))
	add(OpSetPCP, "set-pcp", uint64(a.PCP))
	add(OpPolice, "police", uint64(a.Meter))
	add(OpCount, "count")
	add(OpMirror, "mirror", uint64(a.Session))
	add(OpRedirect, "redirect", uint64(a.Port))
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}
