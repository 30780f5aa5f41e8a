package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A wait for an interface ends as soon as it is cancelled, and the error names the interface.
func TestAwaitedNoLonger(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := AwaitInterface(ctx, "never-there", "", time.Now().Add(time.Minute))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "never-there") {
		t.Errorf("it says %v", err)
	}
	_, err = AwaitInterface(t.Context(), "never-there", "", time.Now())
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("when the time is over, it says %v", err)
	}
}
