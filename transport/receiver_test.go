package transport

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gswitch/frame"
)

// reply writes a verdict as the paper does.
func reply(v Verdict) string {
	switch v.Reply {
	case AckReply:
		return fmt.Sprintf("ACK(%d) MSN %d", v.Cum, v.MSN)
	case NakReply:
		return fmt.Sprintf("NACK(%d,%d) MSN %d", v.Cum, v.Sack, v.MSN)
	}
	return "nothing"
}

// Send{0,1,2}, Write{3}, Send{4,5} arrive as 0,2,3,5,4,1: the message
// sequence number and the completions wait for the order.
func TestMessagesCompleteInOrder(t *testing.T) {
	kinds := []PacketKind{Middle, Middle, LastCQE, Last, Middle, LastCQE}
	var r Receiver
	r.Init(irn(8))
	for _, c := range []struct {
		seq         uint64
		reply       string
		inOrder     uint32
		completions uint32
	}{
		{0, "ACK(1) MSN 0", 1, 0},
		{2, "NACK(1,2) MSN 0", 0, 0},
		{3, "NACK(1,3) MSN 0", 0, 0},
		{5, "NACK(1,5) MSN 0", 0, 0},
		{4, "NACK(1,4) MSN 0", 0, 0},
		{1, "ACK(6) MSN 3", 5, 2},
	} {
		v := r.Data(0, c.seq, kinds[c.seq])
		if !v.Deliver || v.Duplicate || reply(v) != c.reply || v.InOrder != c.inOrder || v.Completions != c.completions {
			t.Errorf("packet %d: %s, %+v", c.seq, reply(v), v)
		}
	}
	if v := r.Data(0, 3, Last); v.Deliver || !v.Duplicate || reply(v) != "ACK(6) MSN 3" {
		t.Errorf("duplicate: %s, %+v", reply(v), v)
	}
}

func TestDuplicateOutOfOrderIsNotPlacedAgain(t *testing.T) {
	var r Receiver
	r.Init(irn(8))
	r.Data(0, 3, LastCQE)
	if v := r.Data(0, 3, LastCQE); v.Deliver || !v.Duplicate || reply(v) != "NACK(0,3) MSN 0" {
		t.Errorf("%s, %+v", reply(v), v)
	}
	if v := r.Data(0, 8, Middle); v.Deliver || v.Reply != None || r.Stats().Beyond != 1 {
		t.Errorf("a packet beyond the cap: %s, %+v", reply(v), v)
	}
}

func TestGoBackNReportsEachGapOnce(t *testing.T) {
	var r Receiver
	cfg := Config{Recovery: GoBackN}
	r.Init(&cfg)
	want := func(now frame.Time, seq uint64, deliver bool, want string) {
		t.Helper()
		if v := r.Data(now, seq, Middle); v.Deliver != deliver || reply(v) != want {
			t.Errorf("packet %d: deliver %v, %s, want %s", seq, v.Deliver, reply(v), want)
		}
	}
	want(0, 0, true, "ACK(1) MSN 0")
	want(0, 2, false, "NACK(1,1) MSN 0")
	want(0, 3, false, "nothing")
	want(0, 1, true, "ACK(2) MSN 0")
	want(0, 3, false, "NACK(2,2) MSN 0")
	want(frame.Second, 4, false, "nothing")

	cfg.NakInterval = 500 * us // now the same gap is reported again
	want(frame.Second, 4, false, "NACK(2,2) MSN 0")
	want(frame.Second+500*us, 5, false, "nothing")
	want(frame.Second+501*us, 5, false, "NACK(2,2) MSN 0")
	cfg.NakEvery = true
	want(frame.Second+501*us, 6, false, "NACK(2,2) MSN 0")
}

func TestAcksAreCoalesced(t *testing.T) {
	var r Receiver
	cfg := irn(16)
	cfg.AckEvery = 3
	r.Init(cfg)
	for _, c := range []struct {
		seq  uint64
		kind PacketKind
		want string
	}{
		{0, Middle, "nothing"},
		{1, Middle, "nothing"},
		{2, Middle, "ACK(3) MSN 0"},
		{3, Middle, "nothing"},
		{4, Last, "ACK(5) MSN 1"}, // the end of a message is always answered
		{5, Middle, "nothing"},
		{7, Middle, "NACK(6,7) MSN 1"}, // a gap as well, and what closes it
		{6, Middle, "ACK(8) MSN 1"},
		{2, Middle, "ACK(8) MSN 1"}, // a duplicate too
		{8, Middle, "nothing"},
		{9, Middle, "nothing"},
		{12, Middle, "NACK(10,12) MSN 1"}, // a NACK acknowledges as well
		{10, Middle, "nothing"},
	} {
		if v := r.Data(0, c.seq, c.kind); reply(v) != c.want {
			t.Errorf("packet %d: %s, want %s", c.seq, reply(v), c.want)
		}
	}
}

// Any order of arrival within the cap counts every message and completion
// once, with bitmaps that wrap and that are smaller than a word, or larger.
func TestDrainCountsEveryWordOnce(t *testing.T) {
	rnd := frame.NewRand(3)
	for _, cap := range []uint32{1, 2, 63, 64, 65, 128, 300} {
		cfg := irn(cap)
		var r Receiver
		r.Init(cfg)
		var msgs, cqes, delivered uint32
		kind := func(seq uint64) PacketKind { return PacketKind(seq * 2654435761 >> 7 % 3) }
		for next := uint64(0); next < 5000; {
			seq := next + uint64(rnd.Uint32n(cap))
			v := r.Data(0, seq, kind(seq))
			for range v.InOrder {
				switch kind(next) {
				case LastCQE:
					cqes++
					msgs++
				case Last:
					msgs++
				}
				next++
			}
			delivered += v.InOrder
			cqes -= v.Completions
			if v.Cum != next || r.Expected() != next || v.MSN != msgs || cqes != 0 {
				t.Fatalf("cap %d, packet %d: cum %d, want %d; MSN %d, want %d; completions off by %d", cap, seq, v.Cum, next, v.MSN, msgs, int32(cqes))
			}
		}
		if s := r.Stats(); s.Delivered < uint64(delivered) || s.Delivered > uint64(delivered+cap) {
			t.Errorf("cap %d: %d delivered, %d in order", cap, s.Delivered, delivered)
		}
	}
}

// The ring's words hold bits of both ends when it is full.
func TestBitmapAgainstSets(t *testing.T) {
	rnd := frame.NewRand(4)
	for _, size := range []uint64{64, 128, 512} {
		b := bitmap(nil).recycle(int(size))
		first := uint64(rnd.Uint32n(1000))
		set := map[uint64]bool{}
		for q := first; q < first+size; q++ {
			if rnd.Uint32n(3) > 0 {
				b.set(q)
				set[q] = true
			}
		}
		for range 2000 {
			from, to := first+uint64(rnd.Uint32n(uint32(size))), first+uint64(rnd.Uint32n(uint32(size)))
			if from > to {
				from, to = to, from
			}
			want := from
			for want < to && set[want] {
				want++
			}
			if got := b.zero(from, to); got != want {
				t.Fatalf("size %d: zero(%d, %d) = %d, want %d", size, from, to, got, want)
			}
			n := 1 + int(rnd.Uint32n(20))
			left, want := n, to+1
			for left > 0 && want > from {
				if want--; set[want] {
					left--
				}
			}
			if got, ok := b.nthBelow(to, from, n); ok != (left == 0) || ok && got != want {
				t.Fatalf("size %d: nthBelow(%d, %d, %d) = %d %v, want %d %v", size, to, from, n, got, ok, want, left == 0)
			}
		}
		mid := first + size/3
		b.clearRange(first, mid)
		for q := first; q < first+size; q++ {
			if b.has(q) != (set[q] && q >= mid) {
				t.Fatalf("size %d: clearRange(%d, %d) left %d %v", size, first, mid, q, b.has(q))
			}
		}
	}
}

func TestUnwrap(t *testing.T) {
	for _, c := range []struct {
		near uint64
		psn  uint32
		want uint64
	}{
		{0, 0, 0},
		{0, 5, 5},
		{5, 3, 3},
		{1<<24 - 2, 3, 1<<24 + 3},
		{1<<24 + 3, 0xfffffe, 1<<24 - 2},
		{7 << 24, 0x7fffff, 7<<24 + 0x7fffff},
		{7 << 24, 0x800000, 7<<24 - 0x800000},
		{0, 0xffffff, 0xffffff}, // before the first packet: far ahead instead
		{2, 0xfffffe, 0xfffffe},
	} {
		if got := Unwrap(c.near, c.psn); got != c.want {
			t.Errorf("Unwrap(%#x, %#x) = %#x, want %#x", c.near, c.psn, got, c.want)
		}
	}
}

func TestKindsAreFound(t *testing.T) {
	for _, k := range Kinds() {
		if got, err := Lookup(k.Name); err != nil || got != k || ByCode(k.Code) != k {
			t.Errorf("%v: by its name %v, %v, by its code %v", k, got, err, ByCode(k.Code))
		}
		if k.Title == "" || k.Paper == "" || k.Cite == "" {
			t.Errorf("%v: title, paper or citation is missing", k)
		}
	}
	if _, err := Lookup("cubic"); err == nil || !strings.Contains(err.Error(), "irn-no-sack") || ByCode(200) != nil {
		t.Errorf("a recovery that there is not: %v", err)
	}
}

// Connection requests of other versions name schemes by these codes.
func TestCodesStay(t *testing.T) {
	for i, k := range []*Kind{GoBackN, IRN, IRNGoBackN, IRNNoSACK, TCP, NewReno} {
		if k.Code != uint8(i) {
			t.Errorf("%v has the code %d, not %d", k, k.Code, i)
		}
	}
}

func TestConfigure(t *testing.T) {
	c, err := IRN.Configure(map[string]string{"n": "10", "nack_threshold": "4", "partial_ack": "true", "retransmit_delay": "2us"})
	if want := (Config{Recovery: IRN, N: 10, NackThreshold: 4, PartialAck: true, RetransmitDelay: 2 * us}); err != nil || c != want {
		t.Errorf("%+v, %v; want %+v", c, err, want)
	}
	if c, err := NewReno.Configure(map[string]string{"fast_retransmit": "false"}); err != nil || !c.NoFastRetransmit || c.NackThreshold != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, k := range Kinds() {
		c, err := k.Configure(nil)
		if c.RTOHigh = 1; err != nil || c.Validate() != nil {
			t.Errorf("%v: %v, %v", k, err, c.Validate())
		}
	}
	if _, err := GoBackN.Configure(map[string]string{"n": "3"}); err == nil || !strings.Contains(err.Error(), "go-back-n") || !strings.Contains(err.Error(), `"n"`) {
		t.Errorf("an option that there is not: %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{
		{Cap: MaxFlight + 1},
		{RTOLow: -1},
		{RTOLow: 2, RTOHigh: 1},
		{RTOHigh: 61 * frame.Second},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v passes", c)
		}
	}
	if err := irn(128).Validate(); err != nil {
		t.Error(err)
	}
}

// The transparent mode has the schemes that say so.
func TestTransparentNames(t *testing.T) {
	all, some := Names(), TransparentNames()
	if len(some) == 0 || len(some) == len(all) || slices.Contains(some, "irn-no-sack") || !slices.Contains(some, "irn") {
		t.Errorf("transparent %v of %v", some, all)
	}
}
