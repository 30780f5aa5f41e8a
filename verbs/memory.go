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
	rkey   uint32
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
	var refused error
	if err := h.do(func(frame.Time) { m.rkey, refused = h.node.NIC().Memory().Register(0, data, access) }); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, fmt.Errorf("verbs: %w", refused)
	}
	return m, nil
}

// Remote returns what another host must know to reach the memory, on any queue
// pair of this one: to be sent to it. A Listener that offers the memory tells
// each peer a key that is good for its queue pair alone.
func (m *Memory) Remote() RemoteMemory { return RemoteMemory{m.rkey, uint64(len(m.data))} }

// Bytes returns the memory itself.
func (m *Memory) Bytes() []byte { return m.data }

// Sync waits until the NIC stands between two vectors of frames: what it wrote
// before is seen by the caller afterwards, and what the caller wrote before is seen
// by the NIC. It is for memory that nothing tells of, such as a counter that
// other hosts add to.
func (m *Memory) Sync() error { return m.h.do(func(frame.Time) {}) }

// Close ends the registration: other hosts are refused from then on. A Read that
// was accepted before may still be answered from the bytes.
func (m *Memory) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	var refused error
	if err := m.h.do(func(frame.Time) { refused = m.h.node.NIC().Memory().Deregister(m.rkey) }); err != nil {
		return nil // the host is closed, and its memory with it
	}
	return refused
}
