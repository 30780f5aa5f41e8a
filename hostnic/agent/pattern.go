package agent

import (
	"bytes"
	"runtime"
)

// period of the pattern: a prime, so that no power of two and no frame's
// payload divides it, and a byte that is misplaced shows.
const period = 65521

// pattern is what messages carry: random bytes, the same everywhere. It stands
// here twice, so that every piece of a frame's length lies in one row.
var pattern = func() (p [2 * period]byte) {
	x := uint64(0x9e3779b97f4a7c15)
	for i := range period {
		x ^= x << 13 // xorshift64 (Marsaglia 2003)
		x ^= x >> 7
		x ^= x << 17
		p[i] = byte(x >> 32)
	}
	copy(p[period:], p[:period])
	return p
}()

// Fill writes the pattern of a message, from its first byte on. Each piece lets other
// goroutines go first: copying cannot be preempted, new memory costs a fault for each page,
// and a collection of garbage that waits for the end of 500 MB stops the worker for seconds.
func Fill(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, pattern[:period]):]
		runtime.Gosched()
	}
}

// Matches reports whether b is what a message carries from the byte at on.
func Matches(b []byte, at uint64) bool {
	for len(b) > 0 {
		from := at % period
		k := min(len(b), period)
		if !bytes.Equal(b[:k], pattern[from:][:k]) {
			return false
		}
		b, at = b[k:], at+uint64(k)
	}
	return true
}
