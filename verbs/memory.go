package verbs

import (
	"fmt"
	"sync/atomic"

	"gswitch/frame"
	"gswitch/hostnic"
)

// Access says what other hosts may do with memory, as bits.
type Access = hostnic.Access

const (
	RemoteWrite  = hostnic.RemoteWrite
	RemoteRead   = hostnic.RemoteRead
	RemoteAtomic = hostnic.RemoteAtomic
)

// Memory is bytes that other hosts may reach. What a queue pair of this host
// sends or fills needs no registration.
type Memory struct {
	h      *Host
	data   []byte
	key    uint32 // of this host; others have one for each queue pair
	closed atomic.Bool
}

// RemoteMemory is memory of another host as this one names it.
type RemoteMemory struct {
	RKey uint32
	Len  uint64 // bytes; addresses run from 0 up to it
}

// Register opens bytes to other hosts, at addresses from 0 on: an address is an
// offset in data. data is the NIC's to write, where access lets it, until Close.
func (h *Host) Register(data []byte, access Access) (*Memory, error) {
	if access&^(RemoteWrite|RemoteRead|RemoteAtomic) != 0 {
		return nil, fmt.Errorf("verbs: there are no rights %#x", uint8(access))
	}
	m := &Memory{h: h, data: data}
	c := &register{data: data, size: uint64(len(data)), access: access}
	if err := h.command(c); err != nil {
		return nil, err
	}
	if c.refused != nil {
		return nil, fmt.Errorf("verbs: %w", c.refused)
	}
	m.key = c.key
	return m, nil
}

// Remote returns what the other end of a queue pair must know to reach the memory: to be
// sent to it. The key is good on that queue pair alone, until that or the memory is
// closed; asked for again it is the same. What a Listener offers has such keys, too.
func (m *Memory) Remote(q *QueuePair) (RemoteMemory, error) {
	if q.h != m.h {
		return RemoteMemory{}, fmt.Errorf("verbs: the queue pair is of another host than the memory")
	}
	c := &grant{memory: m.key, qpn: q.conn.Local}
	if err := m.h.command(c); err != nil {
		return RemoteMemory{}, err
	}
	if c.refused != nil {
		return RemoteMemory{}, fmt.Errorf("verbs: %w", c.refused)
	}
	return RemoteMemory{c.key, uint64(len(m.data))}, nil
}

// Bytes returns the memory itself.
func (m *Memory) Bytes() []byte { return m.data }

// Sync waits until the NIC stands between two vectors of frames: what it wrote
// before is seen by the caller afterwards, and what the caller wrote before is seen
// by the NIC. It is for memory that no completion stands for, such as a counter that
// other hosts add to.
func (m *Memory) Sync() error { return m.h.look(func(frame.Time) {}) }

// Close ends the registration: other hosts are refused from then on. A Read that
// was accepted before may still be answered from the bytes.
func (m *Memory) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	c := &deregister{key: m.key}
	if m.h.command(c) != nil {
		return nil // the host is closed, and its memory with it
	}
	return c.refused
}
