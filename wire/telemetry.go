package wire

import "gswitch/frame"

// UDP destination ports that announce an in-band telemetry header between the
// UDP header and what the datagram carries. IANA has assigned none of them
// (4791 is RoCEv2, 4790 VXLAN-GPE); a network that uses another meaning for
// them must not turn telemetry on.
const (
	HPCCPort     uint16 = 4793 // HPCC's block with HPCCSlots records reserved by the sender, then the BTH
	HPCCGrowPort uint16 = 4794 // HPCC's block that each switch lengthens by a record, then the BTH
	INTPort      uint16 = 4795 // P4.org INT 2.1, shim with the original destination port (NPT 1)
)

// Lengths of the telemetry headers, in bytes.
const (
	HPCCBase   = 2 // hop count 4 bits, path identifier 12 (HPCC, section 2.3.2)
	HPCCRecord = 8 // one hop
	HPCCSlots  = 5 // records that the sender reserves: the longest path of a data center (HPCC, section 2.3.2)
	HPCCLen    = HPCCBase + HPCCSlots*HPCCRecord

	INTShimLen = 4  // INT 2.1 section 5.6.2
	INTMDLen   = 12 // INT 2.1 section 5.7

	// LongestTelemetry is the longest header that a sender writes, before switches add to it.
	LongestTelemetry = max(HPCCLen, intHeaderSize)
)

// INT 2.1 field values.
const (
	INTTypeMD     = 1 // shim type: hop-by-hop metadata
	INTNextPort   = 1 // NPT: the shim holds the original UDP destination port
	INTMDVersion  = 2
	INTWord       = 4 // lengths count words
	intHeaderSize = INTShimLen + INTMDLen
)

// TelemetryLen returns the length of the telemetry header at off, which a
// datagram with the UDP destination port bears, and the destination port that
// the datagram would have without it. The bytes up to limit are there. The
// length is 0 with frame.Keep where there is no telemetry header that this
// package knows, and 0 with another reason where there is a broken one.
func TelemetryLen(b []byte, off, limit int, port uint16) (int, uint16, frame.Reason) {
	switch port {
	case HPCCPort:
		if off+HPCCLen > limit {
			return 0, 0, frame.ParseShortINT
		}
		if b[off]>>4 > HPCCSlots {
			return 0, 0, frame.ParseINTHops
		}
		return HPCCLen, RoCEv2Port, frame.Keep
	case HPCCGrowPort:
		if off+HPCCBase > limit {
			return 0, 0, frame.ParseShortINT
		}
		n := HPCCBase + int(b[off]>>4)*HPCCRecord
		if off+n > limit {
			return 0, 0, frame.ParseShortINT
		}
		return n, RoCEv2Port, frame.Keep
	case INTPort:
		return intLen(b, off, limit)
	}
	return 0, port, frame.Keep
}

// intLen is TelemetryLen for INT 2.1.
func intLen(b []byte, off, limit int) (int, uint16, frame.Reason) {
	if off+INTShimLen > limit {
		return 0, 0, frame.ParseShortINT
	}
	h := b[off:]
	if h[0]>>4 != INTTypeMD || h[0]>>2&3 != INTNextPort {
		return 0, INTPort, frame.Keep // another kind of INT: legal, not ours
	}
	n := INTShimLen + int(h[1])*INTWord
	if n < intHeaderSize || off+n > limit {
		return 0, 0, frame.ParseShortINT
	}
	if h[4]>>4 != INTMDVersion {
		return 0, 0, frame.ParseINTVersion
	}
	hop := int(h[6]&0x1f) * INTWord
	if stack := n - intHeaderSize; stack != 0 && (hop == 0 || stack%hop != 0) {
		return 0, 0, frame.ParseINTHops
	}
	return n, be.Uint16(h[2:4]), frame.Keep
}

// HasRecords reports whether switches have written into the telemetry header of a frame to the given UDP port.
// Behind another port and in a broken header they have not.
func HasRecords(port uint16, b []byte) bool {
	switch port {
	case HPCCPort, HPCCGrowPort:
		return len(b) >= HPCCBase && b[0]>>4 > 0
	case INTPort:
		n, _, why := intLen(b, 0, len(b))
		return why == frame.Keep && n > intHeaderSize
	}
	return false
}

// BTHOffset returns the offset of the base transport header of a parsed frame
// with frame.HasRoCE, whether or not telemetry stands before it; 0 without
// RoCE.
func BTHOffset(m *frame.Meta, b []byte) int {
	if m.Flags&frame.HasRoCE == 0 {
		return 0
	}
	off := int(m.L4Inner) + UDPLen
	if m.Flags&frame.HasINT == 0 {
		return off
	}
	n, _, _ := TelemetryLen(b, int(m.INT), len(b), m.DstPort)
	return off + n
}
