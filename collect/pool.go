package collect

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// pool is a resource with a limit for all peers together and a limit for each:
// connections, or bytes of memory.
type pool struct {
	most  int
	share int // limit of one peer; no request is larger

	mu      sync.Mutex
	used    int
	peers   map[netip.Addr]int
	waiting []*waiter // in order of arrival
	refused uint64
}

// waiter waits for its part.
type waiter struct {
	peer  netip.Addr
	n     int
	ready chan struct{} // closed when it has it
}

func newPool(most, share int) *pool {
	return &pool{most: most, share: share, peers: map[netip.Addr]int{}}
}

// peerOf returns the peer to which a connection is charged: an IPv4 address or an IPv6
// /64 network, of which one machine may have all addresses.
func peerOf(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip
	}
	p, err := ip.Prefix(64)
	if err != nil {
		return ip
	}
	return p.Addr()
}

// part is what one connection holds of a pool.
type part struct {
	of   *pool
	peer netip.Addr
	n    int
}

func (p *pool) of(peer netip.Addr) *part { return &part{of: p, peer: peer} }

// try takes n more if they are available.
func (h *part) try(n int) bool {
	p := h.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 || !p.fits(h.peer, n) {
		return false
	}
	p.give(h.peer, n)
	h.n += n
	return true
}

// errFull reports that a pool had nothing for a peer in time.
var errFull = errors.New("there is no memory for it: others, or this address, have all of it")

// take takes n more, and waits up to patience for them.
func (h *part) take(ctx context.Context, n int, patience time.Duration) error {
	p := h.of
	w := &waiter{h.peer, n, make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.serve()
	p.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	err := error(nil)
	select {
	case <-w.ready:
	case <-late.C:
		err = errFull
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting, w); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		p.serve() // those behind it may now have room
		if errors.Is(err, errFull) {
			p.refused++
		}
		return err
	}
	h.n += n
	return nil
}

// refuse counts a request that found no room and does not wait.
func (p *pool) refuse() {
	p.mu.Lock()
	p.refused++
	p.mu.Unlock()
}

// release gives everything back.
func (h *part) release() {
	p := h.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.n == 0 {
		return
	}
	p.used -= h.n
	if p.peers[h.peer] -= h.n; p.peers[h.peer] == 0 {
		delete(p.peers, h.peer)
	}
	h.n = 0
	p.serve()
}

// fits reports whether a peer can have n more.
func (p *pool) fits(peer netip.Addr, n int) bool {
	return p.used+n <= p.most && p.peers[peer]+n <= p.share
}

func (p *pool) give(peer netip.Addr, n int) {
	p.used += n
	p.peers[peer] += n
}

// serve grants waiting requests in order. A peer that has reached its limit does not
// block others.
func (p *pool) serve() {
	keep := p.waiting[:0]
	full := false
	for _, w := range p.waiting {
		if p.peers[w.peer]+w.n > p.share {
			keep = append(keep, w)
			continue
		}
		if full = full || p.used+w.n > p.most; full {
			keep = append(keep, w)
			continue
		}
		p.give(w.peer, w.n)
		close(w.ready)
	}
	clear(p.waiting[len(keep):])
	p.waiting = keep
}

// use returns how much is in use, and how many requests were refused.
func (p *pool) use() (used, refused uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(p.used), p.refused
}
