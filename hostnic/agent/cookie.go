package agent

import (
	"encoding/binary"
	"net/netip"

	"gswitch/frame"
)

// A host that requests a queue pair must first prove that it receives at its address: a
// Request without a cookie is answered by a Challenge of the same length with one, and no
// state is kept (as in RFC 6347 section 4.2.1, DTLS, and RFC 9000 section 8.1, QUIC). A
// host whose address is forged therefore receives no more than the forger sends, and only
// existing addresses take up sessions.

// cookieLife is how long a cookie is valid at least; at most it is twice as long.
const cookieLife = 30 * frame.Second

// cookie returns the cookie that the host at an address must present with a Request of
// the given number.
func (a *Agent) cookie(now frame.Time, from netip.Addr, id uint64) uint64 {
	return a.cookieAt(uint64(now/cookieLife), from, id)
}

func (a *Agent) cookieAt(epoch uint64, from netip.Addr, id uint64) uint64 {
	ip := from.As16()
	return a.secret.Of(epoch, binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), id) | 1 // 0 is none
}

// proved reports whether a Request presents the cookie that was sent to its address.
func (a *Agent) proved(now frame.Time, from netip.Addr, m *message) bool {
	epoch := uint64(now / cookieLife)
	return m.bytes == a.cookieAt(epoch, from, m.id) || epoch > 0 && m.bytes == a.cookieAt(epoch-1, from, m.id)
}
