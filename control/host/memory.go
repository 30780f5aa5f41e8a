package host

import (
	"fmt"

	"gswitch/hostnic/agent"
	inband "gswitch/int"
)

// maxHeld bounds the total memory of running transfers, in bytes: four of the longest
// messages.
const maxHeld = 4 * maxSize

// Bytes kept per message: an agent.Sample and, with pings, the path (inband.Path).
const (
	sampleBytes = 24
	pathBytes   = 48 * inband.MaxHops
)

// need returns the memory of a transfer in bytes.
func need(t *agent.Transfer) uint64 {
	each := uint64(sampleBytes)
	if t.Trace {
		each += pathBytes
	}
	return t.Size + uint64(t.Count)*each
}

// allocate allocates the memory of a transfer, off the worker. Call release when the
// transfer has ended.
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
