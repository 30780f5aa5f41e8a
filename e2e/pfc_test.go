package e2e

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gswitch/control/api"
	"gswitch/wire"
)

// pfcFrame asks for a pause of one class (IEEE 802.1Q annex 36): zero quanta
// end it.
func pfcFrame(src wire.MAC, class int, quanta uint16) []byte {
	b := make([]byte, 60)
	copy(b, []byte{0x01, 0x80, 0xc2, 0, 0, 1})
	copy(b[6:], src[:])
	binary.BigEndian.PutUint16(b[12:], etherControl)
	binary.BigEndian.PutUint16(b[14:], 0x0101)
	binary.BigEndian.PutUint16(b[16:], 1<<class)
	binary.BigEndian.PutUint16(b[18+2*class:], quanta)
	return b
}

// pauseOf reads what a frame asks of a class.
func pauseOf(b []byte, class int) (quanta uint16, asks bool) {
	if len(b) < 34 || binary.BigEndian.Uint16(b[12:]) != etherControl || binary.BigEndian.Uint16(b[14:]) != 0x0101 || b[17]>>class&1 == 0 {
		return 0, false
	}
	return binary.BigEndian.Uint16(b[18+2*class:]), true
}

// A host that honours pauses loses nothing at a port that is ten times slower
// than what it sends; a host that asks for pauses gets them.
func TestPFC(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	a, b := l.hosts[0], l.hosts[1]
	const linkRate = 100_000_000
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
  - name: s1
    ports:
      - {interface: d0, netns: %[1]s, rate: 100Mbps, trust: dscp}
      - {interface: d1, netns: %[1]s, rate: 10Mbps, trust: dscp}
    classes: {dscp: {26: 3, 0: 0}}
    qos: {}
    buffer: {size: 8MB, lossless: {alpha: 0.015625, response: 100ms}}
    pfc: {classes: [3]}
    fdb: {static: [{mac: "%[2]s", port: d0}, {mac: "%[3]s", port: d1}]}
`, l.sw, a.mac, b.mac))

	// The pauses are captured on their way out.
	dump := d.capture("-p", "d0", "--out", "pfc")

	control, data, arrive := a.raw(t, etherControl), a.raw(t, etherTest), b.raw(t, 0x0800)
	f := flow{dst: b.mac, src: a.mac, srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: 9004, dscp: 26, size: 1514}
	const frames = 800
	var xoffs, xons uint64
	var pausedUntil time.Time
	honour := func(wait time.Duration) {
		for {
			m, _ := control.recv(wait)
			if m == nil {
				return
			}
			wait = 0
			quanta, asks := pauseOf(m, 3)
			if !asks {
				t.Errorf("a control frame that is no pause of class 3: % x", m)
				continue
			}
			if quanta == 0 {
				xons++
			} else {
				xoffs++
			}
			pausedUntil = time.Now().Add(time.Duration(quanta) * 512 * time.Second / linkRate)
		}
	}
	start, sent := time.Now(), 0
	budget := 0.0 // of frames, at the rate of the host's link
	content := f.frame(0)
	for last := start; sent < frames; {
		honour(0)
		now := time.Now()
		budget = min(8, budget+now.Sub(last).Seconds()*linkRate/8/(1514+24))
		last = now
		if now.Before(pausedUntil) || budget < 1 {
			honour(time.Millisecond)
			continue
		}
		f.renumber(content, uint64(sent))
		if err := data.send(content); err != nil {
			t.Fatal(err)
		}
		sent, budget = sent+1, budget-1
	}
	for n := range uint64(frames) {
		m, _ := arrive.recv(patience)
		if m == nil {
			t.Fatalf("frame %d does not arrive; drops: %v", n, d.drops())
		}
		if got, _ := flowNumber(m, 9004); got != n {
			t.Fatalf("frame %d arrives, want %d; drops: %v", got, n, d.drops())
		}
	}
	if losses := d.losses(); len(losses) > 0 {
		t.Errorf("losses: %v", losses)
	}
	class := func(port string) *api.PFCClass {
		for _, c := range show(d, &api.PFC{}, "pfc", port).Classes {
			if c.Class == 3 {
				return c
			}
		}
		t.Fatalf("show pfc %s has no class 3", port)
		return nil
	}
	var asked *api.PFCClass
	eventually(t, "the host has all pauses of the switch", func() error {
		honour(10 * time.Millisecond)
		if asked = class("d0"); asked.TxXoff != xoffs || asked.TxXon != xons || asked.Asking {
			return fmt.Errorf("%d XOFF and %d XON came: %v", xoffs, xons, asked)
		}
		return nil
	})
	t.Logf("%d frames in %v; the host got %d XOFF and %d XON; the switch counts %d and %d, asked for %.3f s", frames, time.Since(start).Round(time.Millisecond),
		xoffs, xons, asked.TxXoff, asked.TxXon, asked.AskedSeconds)
	if xoffs == 0 || xons == 0 {
		t.Errorf("pauses of the switch: %v", asked)
	}

	dump.end()
	rows := tshark(t, dump.file, "eth.dst", "macc.opcode", "macc.cbfc.enbv", "macc.cbfc.pause_time.c3", "_ws.malformed")
	if len(rows) != int(xoffs+xons) {
		t.Errorf("%d pause frames captured, want %d", len(rows), xoffs+xons)
	}
	for _, r := range rows {
		if r[0] != "01:80:c2:00:00:01" || r[1] != "0x0101" || r[2] != "0x0008" || r[3] != "0" && r[3] != "65535" || r[4] != "" {
			t.Errorf("tshark reads %q", r)
		}
	}

	// The other way: host 1 pauses class 3 of a slow port, for 33 s at once.
	d.do("set", "port", "d1", "--rate", "1Mbps")
	pauser := b.raw(t, etherControl)
	if err := pauser.send(pfcFrame(b.mac, 3, 0xffff)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the switch is paused", func() error {
		if c := class("d1"); !c.Paused || c.RxXoff != 1 {
			return fmt.Errorf("%v", c)
		}
		return nil
	})
	for n := range 10 {
		paused, free := f, f
		paused.size, free.size, free.dscp, free.dstPort = 100, 100, 0, 9005
		if err := data.send(paused.frame(uint64(n))); err != nil {
			t.Fatal(err)
		}
		if err := data.send(free.frame(uint64(n))); err != nil {
			t.Fatal(err)
		}
	}
	for n := range uint64(10) {
		if m, _ := arrive.recv(patience); m == nil {
			t.Fatal("a class that is not paused does not arrive")
		} else if got, ours := flowNumber(m, 9005); !ours || got != n {
			t.Fatalf("a frame of the paused class arrives, or out of order: %x", m)
		}
	}
	if err := pauser.send(pfcFrame(b.mac, 3, 0)); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(10) {
		if m, _ := arrive.recv(patience); m == nil {
			t.Fatal("the pause does not end")
		} else if got, ours := flowNumber(m, 9004); !ours || got != n {
			t.Fatalf("not frame %d of the class that was paused: %x", n, m)
		}
	}
	if c := class("d1"); c.RxXoff != 1 || c.RxXon != 1 || c.Paused || c.PausedSeconds <= 0 {
		t.Errorf("pauses of the host: %v", c)
	}
	if drops := d.drops(); drops["pause-consumed"] != 2 || len(d.losses()) > 0 {
		t.Errorf("drops: %v", drops)
	}
	d.stop(l.sw)
}

// tshark reads fields of every frame of a file.
func tshark(t testing.TB, file string, fields ...string) (rows [][]string) {
	t.Helper()
	need(t, "tshark")
	args := []string{"-n", "-r", file, "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	var errs strings.Builder
	c := exec.Command("tshark", args...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil || strings.Contains(errs.String(), "cut short") {
		t.Fatalf("tshark: %v\n%s", err, errs.String())
	}
	for line := range strings.Lines(string(out)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "|"))
	}
	return rows
}
