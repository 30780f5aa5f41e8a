package control

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"gswitch/control/api"
)

// Clients counts the clients that a daemon serves, and those that it refused.
type Clients struct {
	mu        sync.Mutex
	listeners []*limited
	requests  atomic.Int64 // in progress
	documents atomic.Int64 // being read, or waiting for it
}

// limit returns a listener with a bound on its connections, which are counted.
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

// documentLimits returns the limits of documents that an API accepts.
func (c *Clients) documentLimits() []*api.Limit {
	return []*api.Limit{
		{Kind: "requests", Name: "documents that are read", Unit: "requests", Used: uint64(min(1, c.documents.Load())), Limit: 1},
		{Kind: "requests", Name: "bytes of a document", Unit: "bytes", Limit: maxDocument},
		{Kind: "requests", Name: "bytes of another request", Unit: "bytes", Limit: maxRequest},
	}
}
