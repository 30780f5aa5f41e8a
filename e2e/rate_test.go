package e2e

import (
	"fmt"
	"testing"
	"time"
)

// emulated works out what a link loses while its worker is kept from its
// processor. It falls behind in each gap that is several times what a frame
// takes, and catches up by frames that follow each other faster than they could
// on the link; what it is behind by more than its burst is lost, unless the frames
// that come then show that it was not: no link is ahead. One that is slow falls
// behind without gaps, and nothing of that counts.
type emulated struct {
	span, burst  time.Duration // of a frame; how far it catches up
	before       time.Time
	behind, lost time.Duration
}

func (k *emulated) sends(at time.Time) {
	gap := at.Sub(k.before)
	if !k.before.IsZero() && (gap < k.span || gap > 3*k.span) {
		k.behind += gap - k.span
	}
	switch late := k.behind - k.burst; {
	case late > 0:
		k.lost, k.behind = k.lost+late, k.burst
	case k.behind < 0:
		k.lost, k.behind = max(0, k.lost+k.behind), 0
	}
	k.before = at
}

// measureRate floods a port and returns the bit rate at which frames with
// extra bytes on the link leave it, from the first arrival to the last, without
// what the link lost while its worker was away.
func measureRate(t testing.TB, from, to *host, dstPort uint16, size, extra int, perSecond float64, k emulated, d time.Duration) (rate float64, frames int, lost time.Duration) {
	t.Helper()
	data, arrive := from.raw(t, etherTest), to.raw(t, 0x0800)
	f := flow{dst: to.mac, src: from.mac, srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: dstPort, size: size}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := f.frame(0)
		start, sent := time.Now(), 0
		for time.Since(start) < d {
			for due := int(time.Since(start).Seconds() * perSecond); sent < due; sent++ {
				f.renumber(b, uint64(sent))
				data.send(b)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	// What still waits in the queue when the sender ends leaves at the rate,
	// too; so all arrivals count.
	var first, last time.Time
	for {
		b, at := arrive.recv(300 * time.Millisecond)
		if b == nil {
			select {
			case <-done:
				if n := arrive.dropped(); n > 0 {
					t.Logf("%d frames were lost at the receiver", n)
				}
				return float64((frames-1)*(size+extra)*8) / (last.Sub(first) - k.lost).Seconds(), frames, k.lost
			default:
				continue
			}
		}
		if _, ours := flowNumber(b, dstPort); ours {
			if frames == 0 {
				first = at
			}
			last = at
			frames++
			k.sends(at)
		}
	}
}

// A port of 50 Mbit/s passes 50 Mbit/s, preamble, checksum and gap included,
// or not if so configured.
func TestEmulatedRate(t *testing.T) {
	l := newLab(t, 4, labOptions{})
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
workers: [{poll: spin}]
switches:
  - name: s1
    ports:
      - {interface: d0, netns: %[1]s}
      - {interface: d1, netns: %[1]s, rate: 50Mbps, burst: 20ms}
      - {interface: d2, netns: %[1]s}
      - {interface: d3, netns: %[1]s, rate: 20Mbps, burst: 20ms, overhead: none}
    buffer: {limit: 1MiB}
    fdb: {static: [{mac: "%[2]s", port: d1}, {mac: "%[3]s", port: d3}]}
`, l.sw, l.hosts[1].mac, l.hosts[3].mac))
	type attempt struct {
		rate, want float64
		frames     int
		lost       time.Duration
	}
	// What is lost while a worker is kept from its processor is seen in the gaps
	// between frames, but not to the last frame: so the best of some attempts
	// counts. The fastest of all must not be too fast.
	best := [2]float64{}
	for try := 0; try < 5 && min(best[0], best[1]) < 0.98; try++ {
		second := make(chan attempt)
		go func() {
			// 200 bytes: with overhead this would be 12 % less.
			r, n, lost := measureRate(t, l.hosts[2], l.hosts[3], 9006, 200, 0, 25_000, emulated{span: 80 * time.Microsecond, burst: 20 * time.Millisecond}, 3*time.Second)
			second <- attempt{r, 20e6, n, lost}
		}()
		r, n, lost := measureRate(t, l.hosts[0], l.hosts[1], 9007, 1000, 24, 9000, emulated{span: 163840 * time.Nanosecond, burst: 20 * time.Millisecond}, 3*time.Second)
		for i, a := range [2]attempt{{r, 50e6, n, lost}, <-second} {
			t.Logf("port %d: %d frames at %.3f Mbit/s of %.0f (%+.2f %%) but for %v", 2*i+1, a.frames, a.rate/1e6, a.want/1e6, 100*(a.rate/a.want-1), a.lost)
			if a.rate > 1.02*a.want {
				t.Errorf("port %d is too fast: %.3f Mbit/s", 2*i+1, a.rate/1e6)
			}
			best[i] = max(best[i], a.rate/a.want)
		}
	}
	for i, b := range best {
		if b < 0.98 {
			t.Errorf("port %d is too slow: %.2f %% of its rate", 2*i+1, 100*b)
		}
	}
	// What did not fit was dropped at the queue and nowhere else.
	drops, p := d.drops(), d.ports()
	if drops["queue-tail"] == 0 || p["d0"].RxFrames+p["d2"].RxFrames != p["d1"].TxFrames+p["d3"].TxFrames+drops["queue-tail"] {
		t.Errorf("%d + %d received, %d + %d sent, drops %v", p["d0"].RxFrames, p["d2"].RxFrames, p["d1"].TxFrames, p["d3"].TxFrames, drops)
	}
	d.stop(l.sw)
}
