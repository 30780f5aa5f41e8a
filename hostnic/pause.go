package hostnic

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// The way of a pause. Requests of the neighbour: flowControl gives the frame to the
// pfc.Port (NIC.flow), and updatePaused keeps the classes that may not be sent. Requests of
// the NIC, for a slow host (slowhost.go): queueFlowControl makes the frames, and Transmit
// sends them ahead of all others (takeControl).

// controlRetry is the time after which a flow control frame for which there was no chunk
// is retried.
const controlRetry = frame.Microsecond

// flowControlArrived processes a PFC or pause frame.
func (n *NIC) flowControlArrived(now frame.Time, r frame.Ref, m *frame.Meta, b []byte) {
	if dst := wire.Ethernet(b).DstUint64(); dst != n.mac && dst != wire.MACControlAddr.Uint64() {
		n.drop(r, frame.ForeignMAC)
		return
	}
	switch wire.MACControl(b).Opcode() {
	case wire.OpPFC:
		var f wire.PFCFields
		if _, why := f.Decode(b); why != frame.Keep {
			n.drop(r, why)
			return
		}
		n.flow.Receive(now, uint16(f.Enable), f.Quanta)
	case wire.OpPause:
		n.flow.ReceivePause(now, wire.MACControl(b).PauseQuanta())
	default:
		n.drop(r, frame.ParseMACControlOp)
		return
	}
	n.updatePaused(now)
	n.pool.Free(r)
}

// updatePaused updates what may be sent to what the neighbour pauses.
func (n *NIC) updatePaused(now frame.Time) {
	if n.flow.Changed() == 0 {
		return
	}
	before := n.paused
	n.paused = n.flow.Paused(now)
	if n.cfg.PFCStages != 0 || n.gaps.slow != 0 {
		n.stagesChanged(now)
	} else if n.cfg.QuenchAfter != 0 && before != n.paused {
		n.quenched(now, before)
	}
	if free := before &^ n.paused; free != 0 {
		for ; free != 0; free &= free - 1 {
			// A pause held it back, so a late caller missed nothing.
			n.classes[bits.TrailingZeros8(free)].resumed = now
		}
		n.touch(now)
	}
}

// flowWake returns when flow control next has something to do. Its frames wait for the
// link, and for chunks.
func (n *NIC) flowWake(now frame.Time) frame.Time {
	if !n.up {
		return frame.Never
	}
	return max(n.flow.Wake(now), n.controlAt)
}

// queueFlowControl queues the flow control frames that are due.
func (n *NIC) queueFlowControl(now frame.Time) {
	for n.up && n.flow.Wake(now) <= now {
		r := n.pool.Alloc()
		if r == frame.Nil {
			n.count.Drops[frame.ArenaExhausted]++
			n.controlAt = now + controlRetry
			return
		}
		m := n.arena.Reset(r)
		m.Len = wire.MinFrame
		k := n.flow.NextFrame(now, n.arena.Bytes(r))
		if k == 0 {
			n.pool.Free(r)
			return
		}
		m.Len, m.Wire = uint16(k), uint32(k)
		if s := n.cfg.Sizes.PFC; s != 0 {
			m.Wire = uint32(s)
			m.Len = uint16(min(k, s))
		}
		n.control.Push(n.arena, r)
		n.touched = true
	}
}

// takeControl takes the oldest flow control frame: it leaves at once, as a switch's does,
// and its time is charged to the link.
func (n *NIC) takeControl(now frame.Time) frame.Ref {
	r := n.control.Pop(n.arena)
	n.depart(max(now, n.clock.Free()), r)
	n.count.FlowFrames++
	return r
}
