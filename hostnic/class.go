package hostnic

import (
	"math/bits"

	"gswitch/frame"
)

// class is the state of a traffic class for sending data.
type class struct {
	lanes   [numLanes]readySet // by kind: the queue pairs whose lanes may send now
	level   uint8              // classes that share what is left by weight
	top     uint8              // one above the highest of them
	quantum int64              // bytes of a turn, 0 for strict
	deficit int64
	waits   uint64     // bytes that windows have admitted, with MarkAbove
	turn    uint8      // in the level's highest class: the class whose turn it is
	resumed frame.Time // the end of its last pause
	left    uint32     // payload bytes of the turn of lanes[inTurn].burst, with Config.Turn
}

// quantumUnit is the turn of weight 1, if that is the least weight of its level, in
// bytes: a standard full-size frame with its overhead on the link.
const quantumUnit = 1538

// setLevels groups neighbouring weighted classes, as egress ports of switches
// do (see package scheduler).
func (n *NIC) setLevels() {
	w := &n.cfg.Weights
	for i := 7; i >= 0; {
		lo, least := i, w[i]
		for least != 0 && lo > 0 && w[lo-1] != 0 {
			lo--
			least = min(least, w[lo])
		}
		n.classes[i].turn = uint8(i)
		for k := lo; k <= i; k++ {
			n.classes[k].level, n.classes[k].top = uint8(1<<(i+1)-1<<lo), uint8(i+1)
			if least != 0 {
				n.classes[k].quantum = int64(w[k]) * quantumUnit / int64(least)
			}
		}
		i = lo - 1
	}
}

// nextClass chooses among the classes that can send: the highest, or by deficit round
// robin within its level. A class may overdraw its turn by a frame, which is deducted
// from its next one (surplus round robin: the length of the next frame need not be
// known).
func (n *NIC) nextClass(can uint8) int {
	i := bits.Len8(can) - 1
	if n.classes[i].quantum == 0 {
		return i
	}
	level := n.classes[i].level
	can &= level
	lead := &n.classes[n.classes[i].top-1]
	c := int(lead.turn)
	for can>>c&1 == 0 || n.classes[c].deficit <= 0 {
		if below := can & (1<<c - 1); below != 0 {
			c = bits.Len8(below) - 1
		} else {
			c = bits.Len8(can) - 1
		}
		lead.turn = uint8(c)
		n.classes[c].deficit = min(n.classes[c].deficit, 0) + n.classes[c].quantum
	}
	return c
}

// goOn lets a queue pair that has sent a frame continue, until its turn or its message is
// over.
func (c *class) goOn(i, payload, turn uint32, last bool) {
	if c.lanes[inTurn].burst != i {
		c.left = turn
	}
	if last || c.left <= payload {
		c.lanes[inTurn].burst = noNode
		return
	}
	c.left -= payload
	c.lanes[inTurn].burst = i
}
