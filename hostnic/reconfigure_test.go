package hostnic

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"gswitch/frame"
)

// A change of the link's rate acts at once on a message that is under way, and
// nothing of it is lost: it takes the time that the two rates give.
func TestReconfigureRate(t *testing.T) {
	p := newPairOn(t, newRig(t, 1024, 2048), func(_ int, c *Config) { c.Virtual, c.Rate = false, 8e9 })
	qa, _ := p.connect(nil)
	const bytes = 1_000_000 // 1 ms at 8 Gb/s
	must(t, p.a.SendMessage(0, qa, bytes, 1))
	p.run(200 * frame.Microsecond)
	half := p.a.Counts().TxBytes
	cfg := p.a.Config()
	cfg.Rate = 800e6
	must(t, p.a.Reconfigure(p.now, &cfg))
	p.run(400 * frame.Microsecond)
	// 200 us at 0.8 Gb/s are 20 kB, and a frame more that is on its way.
	if got := p.a.Counts().TxBytes - half; got < 17_000 || got > 22_000 {
		t.Errorf("%d bytes in 200 us at 0.8 Gb/s, after %d at 8 Gb/s", got, half)
	}
	cfg.Rate = 8e9
	must(t, p.a.Reconfigure(p.now, &cfg))
	p.run(20 * frame.Millisecond)
	if len(take(p.b)) != 1 || p.a.Counts().Retransmissions != 0 {
		t.Errorf("the message is not complete, or was sent again: %+v", p.a.Counts())
	}
	p.drained()
}

// A pause of a class that leaves flow control ends; what cannot change is
// refused, and leaves all as it was.
func TestReconfigureRefuses(t *testing.T) {
	p := newPairOn(t, newRig(t, 64, 2048), func(_ int, c *Config) { c.Virtual, c.PFC, c.PFCClasses = false, true, 8 })
	before := p.a.Config()
	for want, change := range map[string]func(c *Config){
		"stand in the frames":  func(c *Config) { c.Addr = netip.MustParseAddr("10.9.9.9") },
		"stand in the frames ": func(c *Config) { c.MAC[5]++ },
		"payload":              func(c *Config) { c.Payload = 500 },
		"without a class":      func(c *Config) { c.PFCClasses = 0 },
		"rate 0":               func(c *Config) { c.Rate = 0 },
	} {
		c := before
		change(&c)
		c.BaseRTT++
		if err := p.a.Reconfigure(0, &c); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("want %q, the error is %v", want, err)
		}
		if !reflect.DeepEqual(p.a.Config(), before) {
			t.Errorf("%s: refused, but changed", want)
		}
	}
	p.a.flow.Receive(0, 8, [8]uint16{3: 0xffff})
	p.a.updatePaused(0)
	if p.a.Paused() != 8 {
		t.Fatalf("classes %#x are paused", p.a.Paused())
	}
	c := before
	c.PFC, c.PFCClasses = false, 0
	must(t, p.a.Reconfigure(1, &c))
	if p.a.Paused() != 0 {
		t.Errorf("classes %#x are paused without flow control", p.a.Paused())
	}
}
