package dataplane

import (
	"errors"
	"testing"
)

// An interface that is lost while the engine stops starts no further watch:
// nothing would end that, and the engine would wait for it.
func TestStoppedWatchesNothing(t *testing.T) {
	e, err := New(Config{Chunks: 64})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	err = e.supervisor.watch("")
	e.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	e.supervisor.stop() // as Stop does first
	e.mu.Lock()
	err = e.supervisor.watch("")
	e.mu.Unlock()
	if !errors.Is(err, ErrStopped) || len(e.supervisor.monitors) != 0 {
		t.Errorf("after the end: %v, %d namespaces are watched", err, len(e.supervisor.monitors))
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
}
