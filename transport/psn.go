package transport

// psnBits is the width of a packet sequence number in the base transport
// header (IBTA 9.2).
const psnBits = 24

// Unwrap returns the sequence number next to near whose low 24 bits are
// psn24, the difference of a PSN and the initial one. What would lie before
// the first packet comes out far ahead instead, where every check refuses it.
func Unwrap(near uint64, psn24 uint32) uint64 {
	// The 24-bit difference, sign-extended: from -2^23 to 2^23-1.
	d := int64(int32((psn24-uint32(near))<<(32-psnBits)) >> (32 - psnBits))
	if d < 0 && uint64(-d) > near {
		d += 1 << psnBits
	}
	return near + uint64(d)
}
