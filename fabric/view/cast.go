package view

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// cast hands samples to all that wait for one.
type cast struct {
	wanted atomic.Bool // somebody waits

	mu   sync.Mutex
	last *Sample
	next chan struct{} // closed with the next sample
	err  error         // there are no more
	on   func()        // called when somebody begins to wait; may be nil
}

// wait returns the next sample that is published, or the last one with the
// error if there are no more.
func (c *cast) wait(ctx context.Context) (*Sample, error) {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return c.last, c.err
	}
	if c.next == nil {
		c.next = make(chan struct{})
	}
	next := c.next
	c.wanted.Store(true)
	on := c.on
	c.mu.Unlock()
	if on != nil {
		on()
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-next:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.err
}

// publish hands a sample to all that wait.
func (c *cast) publish(s *Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.put(s)
	}
}

// end says that there are no more after s, or after the last one if s is nil.
// err nil is io.EOF.
func (c *cast) end(s *Sample, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if c.err = err; err == nil {
		c.err = io.EOF
	}
	if s == nil {
		s = c.last
	}
	c.put(s)
}

func (c *cast) put(s *Sample) {
	c.last = s
	c.wanted.Store(false)
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}
