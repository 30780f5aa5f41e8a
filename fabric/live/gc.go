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

// collector disables the garbage collector while time runs. Workers allocate nothing, but
// callbacks (samples, flows) do, and a collection takes a quarter of the processors while
// it lasts: with two processors a worker would be milliseconds late. Up to a limit of
// memory there is no collection. Beyond the limit the collector works as usual; a run
// that gets there may be late, and its timing shows it.
type collector struct {
	percent int
	limit   int64
	held    bool
}

// most is how much the heap may grow before a collection, if the machine has twice as
// much available.
const most = 2 << 30

// allowance returns how much the heap may grow on this machine: half of the available
// memory, to leave the rest to others, or 0 if that is not known.
func allowance() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	return min(most, available(f)/2)
}

// available returns MemAvailable (proc_meminfo(5)) in bytes, 0 if it is not known.
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

// hold collects once and then disables collection, in one of several processes.
func (c *collector) hold(processes int) {
	debug.FreeOSMemory()
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	c.limit = debug.SetMemoryLimit(int64(s[0].Value.Uint64()) + allowance()/int64(max(1, processes)))
	if c.limit != math.MaxInt64 { // set by the user: keep it
		debug.SetMemoryLimit(c.limit)
	}
	c.percent = debug.SetGCPercent(-1)
	c.held = true
}

// release restores the previous settings.
func (c *collector) release() {
	if !c.held {
		return
	}
	c.held = false
	debug.SetGCPercent(c.percent)
	debug.SetMemoryLimit(c.limit)
}
