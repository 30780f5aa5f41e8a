package metrics

import (
	"strconv"

	"gswitch/dataplane"
	"gswitch/fault"
)

func (e emitter) links(sw string, p *Port) {
	lost, faulty := uint64(0), false
	var faults dataplane.FaultCounters
	for i := range p.Links {
		l := &p.Links[i]
		lost += l.TxDropped
		faulty = faulty || l.Faulty
		faults.Add(&l.Faults)
		if l.Kind != dataplane.XDP {
			continue
		}
		e.link(sw, p.Config.Name, l, strconv.Itoa(l.Worker))
	}
	e.count(linkTxDropped, lost, sw, p.Config.Name)
	if faulty || faults != (dataplane.FaultCounters{}) {
		e.faults(&faults, sw, p.Config.Name)
	}
}

// faults emits what the configured faults of a port did. Ports
// without faults have no such counters.
func (e emitter) faults(f *dataplane.FaultCounters, sw, port string) {
	for i, n := range f.Lost[1:] {
		e.count(faultLost, n, sw, port, fault.Loss(i+1).String())
	}
	e.count(faultRxLost, f.RxLost, sw, port)
	e.count(faultFrames, f.Held, sw, port, "held")
	e.count(faultFrames, f.Duplicated, sw, port, "duplicated")
	e.count(faultFrames, f.Flipped, sw, port, "flipped")
	e.count(faultFrames, f.Uncopied, sw, port, "uncopied")
}

// link reports the sockets of a port.
func (e emitter) link(node, port string, l *dataplane.PortStats, worker string) {
	labels := []string{node, port, worker}
	e.count(xskKicks, l.Kicks, labels...)
	e.count(xskKickFrames, l.KickFrames, labels...)
	e.count(xskKickErrors, l.KickAgain, append(labels, "again")...)
	e.count(xskKickErrors, l.KickDrops, append(labels, "drop")...)
	e.count(xskKickErrors, l.KickNoMemory, append(labels, "no-memory")...)
	e.count(xskRxWakeups, l.RxWakeups, labels...)
	e.count(xskRxDropped, l.RxDropped, labels...)
	e.count(xskRxRingFull, l.RxRingFull, labels...)
	e.count(xskFillRingEmpty, l.FillRingEmpty, labels...)
	e.count(xskRxInvalid, l.RxInvalid, labels...)
	e.count(xskTxInvalid, l.TxInvalid, labels...)
	e.count(xskTxRingEmpty, l.TxRingEmpty, labels...)
}
