package vnet

import (
	"gswitch/fabric/pauses"
	"gswitch/frame"
)

// PauseTrace returns the pauses that the switches logged (Config.PauseLog) up to now. On
// real frames, call it after Halt only.
func (n *Network) PauseTrace(now frame.Time) *pauses.Trace {
	v, forgotten := n.PauseLog(now)
	return pauses.New(v, 0, now.Seconds(), 0, forgotten)
}

// PauseLog returns the pauses of PauseTrace one by one, and the number of earlier ones
// that were discarded. It leaves out nodes that other processes step: they report their
// own.
func (n *Network) PauseLog(now frame.Time) (v []pauses.Pause, forgotten uint64) {
	for s, sw := range n.Switches {
		list, lost := sw.Nodes[0].Pauses(nil)
		forgotten += lost
		for i := range list {
			l := &list[i]
			at := n.end(n.swNode[s], int(l.Port))
			p := pauses.Pause{By: at, Of: n.peer(at), Class: int(l.Class), From: l.From.Seconds(), To: l.To.Seconds(), Held: l.Held, Short: l.Short}
			if l.To == frame.Never {
				p.Lasts, p.To = true, now.Seconds()
			}
			if !l.Asked {
				if _, isSwitch := n.SwitchByName(p.Of.Node); isSwitch {
					continue // it reports itself
				}
				p.By, p.Of = p.Of, p.By
			}
			for _, c := range l.Causes {
				if c.Bytes > 0 {
					p.Causes = append(p.Causes, pauses.Cause{Port: n.end(n.swNode[s], int(c.Port)), Bytes: c.Bytes, Stuck: c.Stuck})
				}
			}
			v = append(v, p)
		}
	}
	return v, forgotten
}
