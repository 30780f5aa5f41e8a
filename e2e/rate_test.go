package e2e

import (
	"fmt"
	"testing"
	"time"
)

// measureRate floods a port and returns the bit rate at which frames with
// extra bytes on the link leave it, from the first arrival to the last.
func measureRate(t testing.TB, from, to *host, dstPort uint16, size, extra int, perSecond float64, d time.Duration) (rate float64, frames int) {
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
				return float64((frames-1)*(size+extra)*8) / last.Sub(first).Seconds(), frames
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
	}
	// A machine that gives a worker no time for longer than its burst makes the
	// link slower, never faster: the best of some attempts counts, the fastest
	// of all must not be too fast.
	best := [2]float64{}
	for try := range 5 {
		results := make(chan [2]attempt)
		go func() {
			second := make(chan attempt)
			go func() {
				// 200 bytes: with overhead this would be 12 % less.
				r, n := measureRate(t, l.hosts[2], l.hosts[3], 9006, 200, 0, 25_000, 3*time.Second)
				second <- attempt{r, 20e6, n}
			}()
			r, n := measureRate(t, l.hosts[0], l.hosts[1], 9007, 1000, 24, 9000, 3*time.Second)
			results <- [2]attempt{{r, 50e6, n}, <-second}
		}()
		r := <-results
		for i, a := range r {
			t.Logf("port %d: %d frames at %.3f Mbit/s of %.0f (%+.2f %%)", 2*i+1, a.frames, a.rate/1e6, a.want/1e6, 100*(a.rate/a.want-1))
			if a.rate > 1.02*a.want {
				t.Errorf("port %d is too fast: %.3f Mbit/s", 2*i+1, a.rate/1e6)
			}
			best[i] = max(best[i], a.rate/a.want)
		}
		if best[0] >= 0.98 && best[1] >= 0.98 || try == 4 {
			break
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
