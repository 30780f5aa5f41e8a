package flowradar

import "gswitch/telemetry"

// Key is a flow's five-tuple.
type Key = telemetry.Flow

// hash returns two independent words of a key, for the filter and for the cells.
// Each switch has keys of its own, without which two switches would be stuck on the
// same flows (section 4.4.2).
func hash(k *telemetry.Keys, f Key) (filter, cells uint64) {
	x := telemetry.Fold(f.Addrs^k[0], f.Rest^k[1])
	return telemetry.Fold(x^k[2], k[3]|1), telemetry.Fold(x^k[3], k[2]|1)
}

// Traffic is what a switch counted of a flow, and which way it went.
type Traffic struct {
	Packets uint32
	Bytes   uint64 // as on a link, without preamble, FCS and gap
	// In and Out are ports of the switch. Out is NoPort where the tables dropped the
	// packets; of a record that is not Exact both are, since it is not known.
	In, Out uint16
}

// NoPort is the In or Out of a flow that has none, Local the Out of one that is for
// the switch itself. A switch has fewer ports than either.
const (
	NoPort = 1<<portBits - 1
	Local  = NoPort - 1
)

// Ports stand in the upper bits of a cell's or entry's rest, above those of keys.
const (
	portBits = 11
	keyBits  = 41
)

func packPorts(in, out uint16) uint64 {
	return uint64(min(in, NoPort))<<keyBits | uint64(min(out, NoPort))<<(keyBits+portBits)
}

func unpackPorts(rest uint64) (in, out uint16) {
	return uint16(rest>>keyBits) & NoPort, uint16(rest>>(keyBits+portBits)) & NoPort
}
