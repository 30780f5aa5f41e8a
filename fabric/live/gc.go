package live

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// collector keeps the garbage collector from running while time goes on. The
// workers make no garbage, but callbacks (samples, flows) do, and a collection
// takes a quarter of the processors for as long as it lasts: on two of them
// that is a worker that comes milliseconds late. So collection is off up to a
// limit of memory, beyond which it works as always: a run that is long enough
// to need it is late then, and says so.
type collector struct {
	percent int
	limit   int64
	held    bool
}

// allowance is by how much the heap may grow before it is collected.
const allowance = 2 << 30

// hold collects what there is, and no more.
func (c *collector) hold() {
	debug.FreeOSMemory()
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	c.limit = debug.SetMemoryLimit(int64(s[0].Value.Uint64()) + allowance)
	if c.limit != math.MaxInt64 { // the user has set one: it holds
		debug.SetMemoryLimit(c.limit)
	}
	c.percent = debug.SetGCPercent(-1)
	c.held = true
}

// release puts everything back.
func (c *collector) release() {
	if !c.held {
		return
	}
	c.held = false
	debug.SetGCPercent(c.percent)
	debug.SetMemoryLimit(c.limit)
}
