package clocktime

import (
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What NTP's programs read is where they look for it, on 64-bit Linux.
func TestNTPSegment(t *testing.T) {
	var l ntpSegment
	for name, at := range map[string][2]uintptr{
		"count": {unsafe.Offsetof(l.count), 4}, "clockTimeStampSec": {unsafe.Offsetof(l.clockSec), 8}, "receiveTimeStampSec": {unsafe.Offsetof(l.recvSec), 24},
		"receiveTimeStampUSec": {unsafe.Offsetof(l.recvUsec), 32}, "leap": {unsafe.Offsetof(l.leap), 36}, "precision": {unsafe.Offsetof(l.precision), 40},
		"valid": {unsafe.Offsetof(l.valid), 48}, "clockTimeStampNSec": {unsafe.Offsetof(l.clockNsec), 52}, "size": {unsafe.Sizeof(l), 96},
	} {
		if at[0] != at[1] {
			t.Errorf("%s at %d, want %d", name, at[0], at[1])
		}
	}
	const unit = 201
	s, err := OpenNTPSegment(unit)
	if err != nil {
		t.Skip(err) // a machine without System V shared memory
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if id, err := unix.SysvShmGet(ntpKey+unit, 0, 0); err == nil {
			unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
	}()
	reader, err := OpenNTPSegment(unit)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	before := reader.p.count
	s.Write(time.Unix(1_800_000_000, 123_456_789), time.Unix(1_800_000_001, 5_000), 30*time.Microsecond)
	p := reader.p
	if p.mode != 1 || p.valid != 1 || p.count != before+2 || p.clockSec != 1_800_000_000 || p.clockUsec != 123_456 || p.clockNsec != 123_456_789 ||
		p.recvSec != 1_800_000_001 || p.recvUsec != 5 || p.recvNsec != 5_000 || p.leap != 0 || p.precision != -15 {
		t.Errorf("%+v", *p)
	}
	for eps, want := range map[time.Duration]int32{0: -30, 1: -29, 100: -23, time.Millisecond: -9, time.Second / 2: -1, time.Second: 1, 3 * time.Second: 2} {
		if got := precision(eps); got != want || got < 0 && time.Duration(1e9>>uint(-got)) < eps {
			t.Errorf("precision of %v: %d, want %d", eps, got, want)
		}
	}
	for _, unit := range []int{-1, NTPUnits} {
		if _, err := OpenNTPSegment(unit); err == nil {
			t.Errorf("unit %d", unit)
		}
	}
}

// A sample holds the truth: the page says here that the root's time is the machine's.
func TestSample(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h1.clock")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Sample(); err == nil {
		t.Error("a sample of a clock that is not synchronised")
	}
	mono, err := clock(unix.CLOCK_MONOTONIC)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(&Image{At: mono, Time: 5e9, Eps: 100, State: Primary})
	s, err := c.Sample()
	if err != nil || s.Latest.Sub(s.Earliest) < 200 || s.Earliest.UnixNano() < 5e9-100 {
		t.Errorf("%+v, %v", s, err)
	}
	if s.Machine.IsZero() {
		t.Error("no time of the machine")
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
