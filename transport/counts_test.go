package transport_test

import (
	"testing"

	"gswitch/transport"
)

// A receiver that keeps what is out of order counts it, and what comes twice.
func TestOutOfOrderIsCounted(t *testing.T) {
	c := transport.Config{Recovery: transport.IRN, Cap: 8}
	var r transport.Receiver
	r.Init(&c)
	for _, seq := range []uint64{0, 2, 3, 2, 1} {
		r.Data(0, seq, transport.Middle)
	}
	if s := r.Stats(); s.Delivered != 4 || s.OutOfOrder != 2 || s.Duplicates != 1 || s.Naks != 3 {
		t.Errorf("%+v, want 4 delivered, 2 of them out of order, 1 twice, 3 NAKs", s)
	}
}

// The low timeout may be as long as the high one, and no longer.
func TestTimeoutsMayBeAlike(t *testing.T) {
	c := transport.Config{Recovery: transport.IRN, RTOLow: 1000, RTOHigh: 1000}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.RTOLow++; c.Validate() == nil {
		t.Error("a low timeout above the high one is taken")
	}
}
