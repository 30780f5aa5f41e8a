package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gswitch/control/api"
	"gswitch/fault"
	"gswitch/frame"
)

// faultLab is two hosts at a switch that has learned both.
func faultLab(t *testing.T) (d *daemon, from, to *raw, send func(number uint64)) {
	l := newLab(t, 2, labOptions{})
	d = run(t, "--netns", l.sw, "--port", "d0", "--port", "d1")
	a, b := l.hosts[0], l.hosts[1]
	from, to = a.raw(t, etherTest), b.raw(t, etherTest)
	if err := to.send(testFrame(broadcast, b.mac, -1, 0, 64)); err != nil {
		t.Fatal(err)
	}
	if f, _ := from.recv(patience); f == nil {
		t.Fatal("the switch does not forward")
	}
	return d, from, to, func(number uint64) {
		t.Helper()
		if err := from.send(testFrame(b.mac, a.mac, -1, number, 64)); err != nil {
			t.Fatal(err)
		}
	}
}

// judged is what the seed decides about n frames.
func judged(c fault.Config, seed uint64, n int) (v []fault.Verdict) {
	m := fault.NewModel(seed)
	m.Set(c)
	for range n {
		v = append(v, m.Judge(nil, nil))
	}
	return v
}

// addsUp checks the account of a port: what the switch sent and what was sent
// twice is what the device took, what was lost, and nothing else.
func addsUp(t *testing.T, p *api.Port) {
	t.Helper()
	var lost uint64
	for _, n := range p.Faults.GetLost() {
		lost += n
	}
	if f := p.Faults; p.TxFrames+f.GetDuplicated() != f.GetTaken()+f.GetWaiting()+lost+p.Xsk.GetTxDropped() {
		t.Errorf("port %s does not add up: sent %d, %v, %v", p.Name, p.TxFrames, f, p.Xsk)
	}
}

// Faults that are set while the switch runs hit just those frames that their
// seed chooses, on real cables, and are counted by reason. Taken off, all is
// as before.
func TestFaultsOnRealFrames(t *testing.T) {
	d, _, to, send := faultLab(t)
	const n, seed = 6000, 7
	d.do("set", "port", "d1", "loss", "1%", "corrupt", "0.5%", "duplicate", "0.5%", "jitter", "20us", "seed", fmt.Sprint(seed))
	d.do("clear", "counters")
	c := fault.Config{Loss: 0.01, Corrupt: 0.005, Duplicate: 0.005, Jitter: 20 * frame.Microsecond}
	lost := map[string]uint64{}
	var doubled uint64
	var got, want []uint64
	for k, v := range judged(c, seed, n) {
		switch {
		case v.Loss == fault.LossRandom:
			lost["link-loss"]++
		case v.Loss != fault.LossNone:
			lost["link-"+v.Loss.String()]++
		case v.Duplicate:
			doubled++
			want = append(want, uint64(k))
			fallthrough
		default:
			want = append(want, uint64(k))
		}
		send(uint64(k))
		if k%32 == 31 || k == n-1 { // no ring is ever full
			for len(got) < len(want) {
				f, _ := to.recv(patience)
				if f == nil {
					t.Fatalf("after %d frames %d arrived, the seed says %d\n%s", k+1, len(got), len(want), d.do("show", "ports", "d1"))
				}
				number, _ := numberOf(f)
				got = append(got, number)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Error("others were hit than the seed says")
	}
	// Four standard deviations: what was drawn is what was asked for.
	if k := lost["link-loss"]; k < 30 || k > 91 {
		t.Errorf("%d of %d frames were lost, want about 60", k, n)
	}
	p := d.ports()["d1"]
	addsUp(t, p)
	if p.TxFrames != n || p.Faults.Duplicated != doubled || fmt.Sprint(p.Faults.Lost) != fmt.Sprint(lost) {
		t.Errorf("%d sent, counted %v, the seed says %v and %d twice", p.TxFrames, p.Faults, lost, doubled)
	}
	for reason, k := range lost {
		if got := d.drops()[reason]; got != k {
			t.Errorf("show drops reports %d under %s, want %d", got, reason, k)
		}
	}
	if out := d.do("show", "ports", "d1"); !strings.Contains(out, "{loss: 1%, corrupt: 0.5%, duplicate: 0.5%, jitter: 20us, seed: 7}") || !strings.Contains(out, fmt.Sprintf("link-loss %d", lost["link-loss"])) {
		t.Errorf("show ports says\n%s", out)
	}

	d.do("set", "port", "d1", "none")
	for k := range uint64(500) {
		send(k)
		if f, _ := to.recv(patience); f == nil {
			t.Fatal("a frame is missing on a port without faults")
		} else if number, _ := numberOf(f); number != k {
			t.Fatalf("frame %d came in the place of %d", number, k)
		}
	}
	if out := d.do("show", "ports", "d1"); !strings.Contains(out, "none now") {
		t.Errorf("show ports says\n%s", out)
	}
}

// Frames that are held back are overtaken by those behind them, and by no
// others; a fault comes and goes under traffic without a frame lost.
func TestReorderingOnRealFrames(t *testing.T) {
	d, _, to, send := faultLab(t)
	const n, seed = 1500, 3
	d.do("set", "port", "d1", "reorder", "4%", "reorder_delay", "3ms", "seed", fmt.Sprint(seed))
	held := map[uint64]bool{}
	for k, v := range judged(fault.Config{Reorder: 0.04, ReorderBy: 3 * frame.Millisecond}, seed, n) {
		held[uint64(k)] = v.Held
		send(uint64(k))
	}
	seen := map[uint64]bool{}
	top, late := uint64(0), 0
	for len(seen) < n {
		f, _ := to.recv(patience)
		if f == nil {
			t.Fatalf("%d of %d frames arrived", len(seen), n)
		}
		k, _ := numberOf(f)
		switch {
		case seen[k]:
			t.Fatalf("frame %d came twice", k)
		case k >= top:
			top = k
		case !held[k]:
			t.Errorf("frame %d was overtaken, which the seed did not choose", k)
		default:
			late++
		}
		seen[k] = true
	}
	if late == 0 {
		t.Error("no frame was overtaken")
	}
	p := d.ports()["d1"]
	addsUp(t, p)
	t.Logf("%d frames held back, %d overtaken", p.Faults.Held, late)

	k := uint64(n)
	for i := range 20 {
		d.do("set", "port", "d1", "jitter", fmt.Sprintf("%dus", 1+i), "reorder", "none", "reorder_delay", "none")
		for range 20 {
			send(k)
			k++
		}
		d.do("set", "port", "d1", "none")
	}
	for len(seen) < int(k) {
		f, _ := to.recv(time.Second * 5)
		if f == nil {
			t.Fatalf("%d of %d frames arrived while faults came and went; %v", len(seen), k, d.drops())
		}
		number, _ := numberOf(f)
		seen[number] = true
	}
	addsUp(t, d.ports()["d1"])
}
