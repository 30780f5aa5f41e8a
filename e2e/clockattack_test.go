package e2e

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"gswitch/clocksync"
	"gswitch/wire"
)

// A host behind a port of a switch that follows another one sends PTP that nobody
// asked for, messages of the root that it kept from before and answers that lie about
// the delay. However many, the bound of the switch's clock holds, and each is counted.
func TestHostsMoveNoClock(t *testing.T) {
	l := newLab(t, 3, labOptions{})
	d, _ := runConfig(t, `version: 1
switches:
- name: s1
  clock: {root: true}
  ports:
  - {interface: d0, netns: `+l.sw+`}
  - {interface: d1, netns: `+l.sw+`}
- name: s2
  clock: {parent: to1, hop: 1s}
  ports:
  - {name: to1, interface: eth0, netns: `+l.hosts[1].ns+`}
  - {interface: d2, netns: `+l.sw+`}
`)
	eventually(t, "the second switch follows the first", func() error {
		if n := clockCounter(d, "clock_messages_total", "valid"); n < 20 {
			return fmt.Errorf("%.0f messages are valid\n%s", n, d.do("show", "clock"))
		}
		return nil
	})
	// What the root says, as a host behind it gets it.
	var kept [][]byte
	listener := l.hosts[0].raw(t, wire.EtherTypePTP)
	eventually(t, "messages of the root are kept", func() error {
		if b, _ := listener.recv(patience); b != nil {
			kept = append(kept, append([]byte(nil), b...))
		}
		if len(kept) < 20 {
			return fmt.Errorf("%d are", len(kept))
		}
		return nil
	})
	refused := func() (n float64) {
		for _, kind := range []string{"ignored", "stray", "foreign", "invalid", "malformed", "unanswered", "excess", "early", "other-root", "boundless"} {
			n += clockCounter(d, "clock_messages_total", kind)
		}
		return n
	}
	before := refused()
	attacker := l.hosts[2].raw(t, 0)
	stop, done := make(chan struct{}), make(chan struct{})
	var sent atomic.Int64
	go func() {
		defer close(done)
		r := rand.New(rand.NewPCG(1, 18))
		b := make([]byte, 128)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			f := wire.PTPFields{Src: wire.MAC{2, 9}, Type: []wire.PTPType{wire.PTPSync, wire.PTPPdelayReq, wire.PTPPdelayResp, wire.PTPAnnounce, wire.PTPFollowUp}[r.IntN(5)],
				Domain: clocksync.DefaultDomain, Clock: r.Uint64(), Port: 1, Sequence: uint16(r.IntN(1 << 16)), Correction: r.Int64(), RequestClock: r.Uint64(), RequestPort: 1,
				Time: wire.PTPTime{Seconds: r.Uint64N(1 << 34)}, HasSundial: r.IntN(4) > 0, Sundial: wire.SundialFields{Epoch: uint32(r.IntN(3)), Depth: uint8(r.IntN(256)), Late: r.Uint32()}}
			frame := b[:f.Encode(b)]
			if r.IntN(2) == 0 {
				frame = kept[r.IntN(len(kept))]
			}
			if attacker.send(frame) == nil {
				sent.Add(1)
			}
		}
	}()
	pagesAgree(t, d)
	eventually(t, "what strangers send is counted", func() error {
		if n := refused() - before; sent.Load() < 1000 || n < 500 {
			return fmt.Errorf("%d messages were sent, %.0f refused\n%s", sent.Load(), n, d.do("show", "clock"))
		}
		return nil
	})
	pagesAgree(t, d)
	close(stop)
	<-done
}
