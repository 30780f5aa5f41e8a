package control

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"gswitch/control/api"
)

// Clients are those whom a daemon serves: how many there are, and how many were
// refused.
type Clients struct {
	mu        sync.Mutex
	listeners []*limited
	requests  atomic.Int64 // under way
	documents atomic.Int64 // that are being read, or wait for it
}

// limit returns a listener with a bound, which is counted.
func (c *Clients) limit(l net.Listener) *limited {
	n := &limited{Listener: l}
	c.mu.Lock()
	c.listeners = append(c.listeners, n)
	c.mu.Unlock()
	return n
}

func (c *Clients) limits() (v []*api.Limit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.listeners {
		l.mu.Lock()
		v = append(v, &api.Limit{Kind: "connections", Name: fmt.Sprintf("connections at %v", l.Addr()), Unit: "connections", Used: uint64(l.open), Limit: maxConnections, Refused: l.refused})
		l.mu.Unlock()
	}
	return append(v, &api.Limit{Kind: "requests", Name: "requests under way", Unit: "requests", Used: uint64(c.requests.Load()), Limit: uint64(len(c.listeners) * maxConnections * maxRequests)})
}

// documentLimits are those of what an API takes.
func (c *Clients) documentLimits() []*api.Limit {
	return []*api.Limit{
		{Kind: "requests", Name: "documents that are read", Unit: "requests", Used: uint64(min(1, c.documents.Load())), Limit: 1},
		{Kind: "requests", Name: "bytes of a document", Unit: "bytes", Limit: maxDocument},
		{Kind: "requests", Name: "bytes of another request", Unit: "bytes", Limit: maxRequest},
	}
}
