package run

import (
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/fabric/workload"
	"gswitch/frame"
)

// streams returns how the flows of an entry use TCP, nil if they do not.
func streams(n *vnet.Network, h *scenario.Hosts, e *scenario.Entry) *vnet.TCP {
	t := e.Streams(h)
	if t == nil {
		return nil
	}
	return &vnet.TCP{Config: t.Config(n.MSS()), ReadRate: uint64(t.ReadRate)}
}

// idealTCP is ideal for a flow over TCP. An open connection needs no handshake.
func (t *traffic) idealTCP(p *part, f *workload.Flow) frame.Time {
	src, dst := int(f.Src), int(f.Dst)
	_, open := p.conns[connKey{f.Src, f.Dst, f.Conn}]
	if f.Retrieval == 0 {
		return t.n.IdealTCP(src, dst, f.Bytes, !open, t.acked)
	}
	d := t.n.IdealTCP(src, dst, uint64(p.entry.Size), true, false) + t.n.IdealTCP(dst, src, f.Answer, true, false)
	if p.entry.Handshake {
		d += t.n.IdealTCP(src, dst, f.Bytes, true, false) + t.n.IdealTCP(dst, src, f.Bytes, true, false)
	}
	return d
}
