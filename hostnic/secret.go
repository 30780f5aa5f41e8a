package hostnic

import (
	"crypto/sha256"
	"encoding/binary"
)

// Secret generates numbers that cannot be distinguished from random ones without its
// seed, whatever other numbers of it are known. (frame.Rand is fast, but its next numbers
// can be computed from earlier ones.)
type Secret [sha256.Size]byte

// NewSecret returns the secret of a seed for a purpose.
func NewSecret(purpose string, seed uint64) Secret {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte(purpose), seed))
}

// Of returns the number of an input.
func (s *Secret) Of(input ...uint64) uint64 {
	var b [2 * sha256.Size]byte
	v := append(b[:0], s[:]...)
	for _, x := range input {
		v = binary.BigEndian.AppendUint64(v, x)
	}
	sum := sha256.Sum256(v)
	return binary.BigEndian.Uint64(sum[:])
}

// Draws is the sequence of a secret's numbers. They may be shown to anyone: they reveal
// nothing else about the seed.
type Draws struct {
	secret Secret
	n      uint64 // drawn
}

// NewDraws returns the numbers of a seed for a purpose.
func NewDraws(purpose string, seed uint64) Draws { return Draws{secret: NewSecret(purpose, seed)} }

// Next draws a number.
func (d *Draws) Next() uint64 {
	d.n++
	return d.secret.Of(d.n)
}
