package host

import (
	"fmt"

	"gswitch/hostnic/agent"
	inband "gswitch/int"
)

// maxHeld bounds what the transfers that are under way keep in memory
// together, in bytes: four of the longest messages.
const maxHeld = 4 * maxSize

// Bytes that are kept of each message: an agent.Sample, and with pings the
// path (inband.Path).
const (
	sampleBytes = 24
	pathBytes   = 48 * inband.MaxHops
)

// need returns what a transfer keeps in memory, in bytes.
func need(t *agent.Transfer) uint64 {
	each := uint64(sampleBytes)
	if t.Trace {
		each += pathBytes
	}
	return t.Size + uint64(t.Count)*each
}

// allocate gives a transfer its memory, here and not on the worker. release is
// to be called when it is over.
func (d *Daemon) allocate(t *agent.Transfer) (release func(), err error) {
	n := need(t)
	if err := d.reserve(n); err != nil {
		return nil, err
	}
	t.Allocate()
	return func() {
		d.memory.Lock()
		defer d.memory.Unlock()
		d.held -= n
	}, nil
}

func (d *Daemon) reserve(n uint64) error {
	d.memory.Lock()
	defer d.memory.Unlock()
	if d.held+n > maxHeld {
		d.unheld++
		return fmt.Errorf("transfers that are under way keep %d of %d MiB in memory, and this one needs %d: wait for their end, or use shorter or fewer messages", d.held>>20, maxHeld>>20, n>>20)
	}
	d.held += n
	return nil
}
