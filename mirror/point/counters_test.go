package point

import (
	"encoding/binary"
	"testing"

	"gswitch/frame"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
)

// counters5 reads the counters samples of a datagram: sequence number and words of the
// generic record, by interface.
func counters5(t *testing.T, b []byte) map[uint32][]uint32 {
	t.Helper()
	if b[23] != wire.ProtoUDP || wire.UDP(b[34:]).DstPort() != 6343 {
		t.Fatalf("no datagram of sFlow: %x", b)
	}
	w := make([]uint32, (len(b)-42)/4)
	for i := range w {
		w[i] = binary.BigEndian.Uint32(b[42+4*i:])
	}
	out := map[uint32][]uint32{}
	n := w[6]
	for w = w[7:]; n > 0; n-- {
		if w[0] != 2 || w[4] != 2 || w[5] != 1 || w[6] != 88 {
			t.Fatalf("no counters sample: %v", w)
		}
		out[w[3]] = append([]uint32{w[2]}, w[7:7+22]...)
		w = w[2+w[1]/4:]
	}
	return out
}

// Counters of every interface are sent each period, with what the ports count, whether
// or not anything passes, and samples of packets beside them.
func TestInterfaceCounters(t *testing.T) {
	r := st.New(t, router(t, "sessions: [{name: s, to: 10.0.2.9, format: sflow, counters: 2s}]"))
	frames := 0
	for period := range 4 {
		if period == 2 {
			r.SetLink(1, false)
		}
		for range 5 * period {
			r.In(0, packet(wire.TCPAck))
			r.Out(1)
			frames++
		}
		if period > 0 { // the first begins with the configuration
			r.Advance(2*frame.Second - 1)
			if out := r.Out(2); len(out) != 0 {
				t.Fatalf("period %d: %d datagrams too early", period, len(out))
			}
			r.Advance(1)
		} else {
			r.Advance(2 * frame.Second)
		}
		v := counters5(t, r.One(2))
		if len(v) != 3 {
			t.Fatalf("period %d: counters of %d interfaces", period, len(v))
		}
		for port, c := range v {
			p := r.Counts(uint16(port - 1))
			up := uint32(3)
			if port == 2 && period >= 2 {
				up = 1
			}
			sent := p.Tx.Frames
			if port == 3 {
				sent-- // this datagram
			}
			if c[0] != uint32(period+1) || c[1] != port || c[6] != up || c[8] != uint32(p.Rx.Bytes) || c[9] != uint32(p.Rx.Frames) || c[17] != uint32(sent) || c[12] != uint32(p.Dropped()) {
				t.Errorf("period %d, port %d: %v, want %+v", period, port, c, p.Rx)
			}
		}
		if got := v[1][9]; got != uint32(frames) {
			t.Errorf("period %d: %d frames came by port 1, %d are reported", period, frames, got)
		}
	}
}

func TestCountersAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"sessions: [{name: s, to: 10.0.2.9, counters: 2s}]":                   "sessions[0].counters: copies say nothing of interfaces; say format: sflow",
		"sessions: [{name: s, to: 10.0.2.9, format: sflow, counters: 100ms}]": "sessions[0].counters: 100ms is more often than collectors want it; say 1s at least",
		"sessions: [{name: s, to: 10.0.2.9, format: sflow, rate: 1Mbps}]":     "sessions[0].format: sflow sends an address samples and counters, and nothing else: say to, and one_in or counters, and take what else there is into another session",
	} {
		if _, err := parse(router(t, ""), text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
