package agent

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// Filling a long message does not keep other goroutines, nor a collection of garbage, from running.
func TestFillLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const pieces = 256
	data := make([]byte, pieces*period)
	var filled atomic.Bool
	go func() {
		Fill(data)
		filled.Store(true)
	}()
	turns := 0
	for ; !filled.Load(); turns++ {
		runtime.Gosched()
	}
	if turns < pieces/2 {
		t.Errorf("another goroutine ran %d times while %d pieces were filled", turns, pieces)
	}
	if !Matches(data, 0) {
		t.Error("what was filled is not the pattern")
	}
}
