package flowradar

import "gswitch/telemetry"

// Key is a flow's five-tuple: 104 bits. IPv6 addresses stand as 32-bit hashes.
// Fragments carry no ports and have 0 in their place at every switch.
type Key struct {
	Addrs uint64 // source, destination
	Rest  uint64 // source port << 24 | destination port << 8 | protocol
}

// NewKey returns the key of a five-tuple. ports is the source port in the upper
// half, the destination port in the lower.
func NewKey(addrs uint64, ports uint32, proto uint8) Key {
	return Key{addrs, uint64(ports)<<8 | uint64(proto)}
}

// restMask are the bits that a key can have.
const restMask = 1<<40 - 1

// hash returns two independent words of a key, for the filter and for the cells.
// Each switch has keys of its own, without which two switches would be stuck on the
// same flows (section 4.4.2).
func hash(k *telemetry.Keys, f Key) (filter, cells uint64) {
	x := telemetry.Fold(f.Addrs^k[0], f.Rest^k[1])
	return telemetry.Fold(x^k[2], k[3]|1), telemetry.Fold(x^k[3], k[2]|1)
}
