package agent

import (
	"encoding/binary"
	"net/netip"

	"gswitch/frame"
)

// Whoever asks for a queue pair first proves that it receives at its address:
// a Request without a cookie is answered by one, of the same length, and nothing
// is kept of it (as in RFC 6347 section 4.2.1, DTLS, and RFC 9000 section 8.1,
// QUIC). So a host whose address others use gets no more than they send, and
// places for sessions go to addresses that exist.

// cookieLife is how long a cookie is good, at least; twice as long at most.
const cookieLife = 30 * frame.Second

// cookie is what the host at an address must show with a Request of a number.
func (a *Agent) cookie(now frame.Time, from netip.Addr, id uint64) uint64 {
	return a.cookieAt(uint64(now/cookieLife), from, id)
}

func (a *Agent) cookieAt(epoch uint64, from netip.Addr, id uint64) uint64 {
	ip := from.As16()
	return a.secret.Of(epoch, binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), id) | 1 // 0 is none
}

// proved reports whether a Request shows the cookie that was sent to its
// address.
func (a *Agent) proved(now frame.Time, from netip.Addr, m *message) bool {
	epoch := uint64(now / cookieLife)
	return m.bytes == a.cookieAt(epoch, from, m.id) || epoch > 0 && m.bytes == a.cookieAt(epoch-1, from, m.id)
}
