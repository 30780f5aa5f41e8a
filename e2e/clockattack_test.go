package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gswitch/clocksync"
	"gswitch/wire"
)

// A host behind a port of a switch that follows another one sends unrequested PTP,
// messages of the root that it kept from before and answers with a wrong
// delay. However many, the bound of the switch's clock holds, and each is counted.
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
  clock: {parent: to1}
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
	// What the root sends, as a host behind it gets it.
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
	before, valid := refused(), clockCounter(d, "clock_messages_total", "valid")
	attacker := l.hosts[2].raw(t, wire.EtherTypePTP)
	stop, done := make(chan struct{}), make(chan struct{})
	var sent, answered atomic.Int64
	go func() {
		defer close(done)
		r := rand.New(rand.NewPCG(1, 18))
		b := make([]byte, 128)
		var truth clocksync.Packet // the root's last message, and when it came
		var came time.Time
		ahead := time.Duration(0)
		for {
			select {
			case <-stop:
				return
			default:
			}
			// A request for the delay is answered with another one.
			asked, _ := attacker.recv(time.Millisecond)
			var q clocksync.Packet
			if _, ok := q.Decode(asked); ok && q.Type == wire.PTPPdelayReq {
				lie := clocksync.Packet{PTPFields: wire.PTPFields{Src: wire.MAC{2, 9}, Type: wire.PTPPdelayResp, Domain: q.Domain, Clock: 9, Port: 1, Sequence: q.Sequence, RequestClock: q.Clock, RequestPort: q.Port,
					Correction: r.Int64N(1000) << 16, Time: q.Time}}
				attacker.send(b[:lie.Encode(b)])
				answered.Add(1)
			}
			f := clocksync.Packet{PTPFields: wire.PTPFields{Src: wire.MAC{2, 9}, Type: []wire.PTPType{wire.PTPSync, wire.PTPPdelayReq, wire.PTPPdelayResp, wire.PTPAnnounce, wire.PTPFollowUp}[r.IntN(5)],
				Domain: clocksync.DefaultDomain, Clock: r.Uint64(), Port: 1, Sequence: uint16(r.IntN(1 << 16)), Correction: r.Int64(), RequestClock: r.Uint64(), RequestPort: 1,
				Time: wire.PTPTime{Seconds: r.Uint64N(1 << 34)}}, HasSundial: r.IntN(4) > 0, Sundial: clocksync.Fields{Epoch: uint32(r.IntN(3)), Depth: uint8(r.IntN(256)), Late: r.Uint32()}}
			// The worst forgery is what the root sends, and a little more each time.
			if now, at := listener.recv(0); now != nil {
				var m clocksync.Packet
				if _, ok := m.Decode(now); ok && m.Type == wire.PTPSync {
					truth, came = m, at
				}
			}
			if r.IntN(2) == 0 && !came.IsZero() {
				f, ahead = truth, ahead+20*time.Millisecond
				t := time.Duration(f.Time.Nanoseconds) + time.Since(came) + ahead
				f.Time.Seconds, f.Time.Nanoseconds = f.Time.Seconds+uint64(t/time.Second), uint32(t%time.Second)
			}
			frame := b[:f.Encode(b)]
			if r.IntN(4) == 0 {
				frame = kept[r.IntN(len(kept))]
			}
			if attacker.send(frame) == nil {
				sent.Add(1)
			}
		}
	}()
	pagesAgree(t, d)
	eventually(t, "what strangers send is counted", func() error {
		if n := refused() - before; sent.Load() < 1000 || n < 500 || answered.Load() == 0 {
			return fmt.Errorf("%d messages were sent, %.0f refused, %d times the delay was asked for\n%s", sent.Load(), n, answered.Load(), d.do("show", "clock"))
		}
		return nil
	})
	pagesAgree(t, d)
	// Some of it claims to be the root.
	eventually(t, "a second root is counted, shown and logged", func() error {
		if n := clockCounter(d, "clock_second_root_total", ""); n < 10 {
			return fmt.Errorf("%.0f messages", n)
		}
		if text := d.do("show", "clock"); !strings.Contains(text, "second root") {
			return fmt.Errorf("show clock: %s", text)
		}
		if text := d.log.String(); !strings.Contains(text, "another clock claims to be the root") {
			return fmt.Errorf("the log: %s", text)
		}
		return nil
	})
	eventually(t, "the second switch follows all the while", func() error {
		if n := clockCounter(d, "clock_messages_total", "valid") - valid; n < 20 {
			return fmt.Errorf("%.0f messages are valid since\n%s", n, d.do("show", "clock"))
		}
		return nil
	})
	close(stop)
	<-done
	t.Logf("%d messages, %d answers to who asks for the delay", sent.Load(), answered.Load())
}
