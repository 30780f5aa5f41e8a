package bump

import (
	"math/bits"
	"net/netip"

	"gswitch/frame"
	"gswitch/wire"
)

// key names a flow as the host sends it, or with remote alone a peer. IPv4
// addresses stand in the low word.
type key struct {
	l0, l1, r0, r1 uint64
	ports          uint32 // local, remote
	proto          uint8
	v6             bool
	host           bool // all packets between the two addresses
}

// remoteOf is the key of a peer.
func (k *key) remoteOf() key { return key{r0: k.r0, r1: k.r1, v6: k.v6} }

// hostOf is the key of the channel that all packets between two addresses may
// share.
func (k *key) hostOf() key {
	return key{l0: k.l0, l1: k.l1, r0: k.r0, r1: k.r1, v6: k.v6, host: true}
}

func (k *key) local() netip.Addr  { return address(k.l0, k.l1, k.v6) }
func (k *key) remote() netip.Addr { return address(k.r0, k.r1, k.v6) }

func address(hi, lo uint64, v6 bool) netip.Addr {
	var b [16]byte
	if !v6 {
		be.PutUint32(b[:], uint32(lo))
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	be.PutUint64(b[:8], hi)
	be.PutUint64(b[8:], lo)
	return netip.AddrFrom16(b)
}

// addressesOf reads the addresses of the IP header ip: ours first, which is
// the source of what we send and the destination of what we receive.
func (k *key) addressesOf(ip []byte, v6, sent bool) {
	k.v6 = v6
	if v6 {
		k.l0, k.l1, k.r0, k.r1 = be.Uint64(ip[8:]), be.Uint64(ip[16:]), be.Uint64(ip[24:]), be.Uint64(ip[32:])
	} else {
		k.l1, k.r1 = uint64(be.Uint32(ip[12:])), uint64(be.Uint32(ip[16:]))
	}
	if !sent {
		k.l0, k.l1, k.r0, k.r1 = k.r0, k.r1, k.l0, k.l1
	}
}

// keyOf is the tuple of a parsed packet that the host sends.
func keyOf(m *frame.Meta, b []byte) key {
	k := key{proto: m.Proto, ports: uint32(m.SrcPort)<<16 | uint32(m.DstPort)}
	k.addressesOf(b[m.L3:], m.Flags&frame.HasIPv6 != 0, true)
	return k
}

// hash folds two products, as package wire's hasher does.
func (k *key) hash(seed uint64) uint32 {
	w := uint64(k.ports)<<8 | uint64(k.proto)
	if k.host {
		w |= 1 << 63
	}
	hi, lo := bits.Mul64(k.l1^k.r0^seed, k.r1^bits.RotateLeft64(k.l0, 31)^0x9e3779b97f4a7c15)
	hi2, lo2 := bits.Mul64(hi^lo^w, seed^0xd6e8feb86659fd93|1)
	return uint32(hi2 ^ lo2 ^ lo2>>32)
}

// table finds a number by a key: open addressing, never more than half full.
type table struct {
	slots []entry
	seed  uint64
	n     int
}

type entry struct {
	key key
	id  int32 // number + 1, 0 empty
}

func newTable(most int, seed uint64) table {
	return table{slots: make([]entry, 1<<bits.Len(uint(2*most))), seed: seed | 1}
}

func (t *table) home(k *key) int { return int(k.hash(t.seed)) & (len(t.slots) - 1) }

// find returns the number, -1 if there is none.
func (t *table) find(k *key) int {
	for i := t.home(k); ; i = (i + 1) & (len(t.slots) - 1) {
		e := &t.slots[i]
		if e.id == 0 {
			return -1
		}
		if e.key == *k {
			return int(e.id - 1)
		}
	}
}

// put notes a key that is not there. The caller bounds their number.
func (t *table) put(k key, id int) {
	i := t.home(&k)
	for t.slots[i].id != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = entry{k, int32(id + 1)}
	t.n++
}

// remove takes a key out, and closes the gap that it leaves (Knuth, volume 3,
// algorithm 6.4R).
func (t *table) remove(k *key) {
	mask := len(t.slots) - 1
	i := t.home(k)
	for ; t.slots[i].key != *k || t.slots[i].id == 0; i = (i + 1) & mask {
		if t.slots[i].id == 0 {
			return
		}
	}
	t.n--
	for j := (i + 1) & mask; t.slots[j].id != 0; j = (j + 1) & mask {
		if h := t.home(&t.slots[j].key); (j-h)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = entry{}
}

// rule returns the first rule that matches a tuple.
func (b *Bump) rule(k *key) *Rule {
	for i := range b.cfg.Rules {
		if r := &b.cfg.Rules[i]; r.matches(k) {
			return r
		}
	}
	return &b.cfg.Default
}

func (r *Rule) matches(k *key) bool {
	if r.Proto != 0 && r.Proto != k.proto {
		return false
	}
	if r.PortHi != 0 {
		l, p := uint16(k.ports>>16), uint16(k.ports)
		if (l < r.PortLo || l > r.PortHi) && (p < r.PortLo || p > r.PortHi) {
			return false
		}
	}
	return !r.Prefix.IsValid() || r.Prefix.Contains(k.remote())
}

// isTCP reports whether the packet is a TCP segment of its own, not one inside
// a tunnel.
func isTCP(m *frame.Meta) bool { return m.Flags&frame.HasTunnel == 0 && m.Proto == wire.ProtoTCP }
