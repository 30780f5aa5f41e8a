package live

import (
	"bufio"
	"io"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
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

// most is by how much the heap may grow before it is collected, where the
// machine has twice as much to spare.
const most = 2 << 30

// allowance is by how much it may grow on this machine: half of what is
// available, so that the rest of it lives on; nothing where that is not known.
func allowance() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	return min(most, available(f)/2)
}

// available is MemAvailable (proc_meminfo(5)) in bytes, 0 if it is not known.
func available(meminfo io.Reader) int64 {
	for lines := bufio.NewScanner(meminfo); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		if err != nil || kib < 0 || kib > math.MaxInt64>>10 {
			return 0
		}
		return kib << 10
	}
	return 0
}

// hold collects what there is, and no more, in one of so many processes.
func (c *collector) hold(processes int) {
	debug.FreeOSMemory()
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	c.limit = debug.SetMemoryLimit(int64(s[0].Value.Uint64()) + allowance()/int64(max(1, processes)))
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
