package dataplane

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/bpf"
	"gswitch/frame"
)

// Of what a driver offers, a clock that stamps frames of PTP is taken, by the filter
// that stamps least.
func TestNICClock(t *testing.T) {
	const raw = unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
	for _, c := range []struct {
		info   unix.EthtoolTsInfo
		device string
		filter int32
	}{
		{unix.EthtoolTsInfo{Phc_index: -1, So_timestamping: raw, Rx_filters: 2}, "", 0},
		{unix.EthtoolTsInfo{Phc_index: 3, So_timestamping: unix.SOF_TIMESTAMPING_RX_HARDWARE, Rx_filters: 2}, "", 0},
		{unix.EthtoolTsInfo{Phc_index: 3, So_timestamping: raw, Rx_filters: 1}, "", 0},
		{unix.EthtoolTsInfo{Phc_index: 3, So_timestamping: raw, Rx_filters: 3}, "/dev/ptp3", unix.HWTSTAMP_FILTER_ALL},
		{unix.EthtoolTsInfo{So_timestamping: raw, Rx_filters: 1<<1 | 1<<9 | 1<<12}, "/dev/ptp0", unix.HWTSTAMP_FILTER_PTP_V2_L2_EVENT},
		{unix.EthtoolTsInfo{So_timestamping: raw, Rx_filters: 1<<1 | 1<<12}, "/dev/ptp0", unix.HWTSTAMP_FILTER_PTP_V2_EVENT},
	} {
		got, err := nicClock(&c.info)
		switch {
		case c.device == "" && !errors.Is(err, ErrNoNICClock):
			t.Errorf("%+v: %+v, %v", c.info, got, err)
		case c.device != "" && (err != nil || got.Device != c.device || got.filter != c.filter):
			t.Errorf("%+v: %+v, %v, want %s and filter %d", c.info, got, err, c.device, c.filter)
		}
	}
	if c, err := FindNICClock("lo"); err == nil {
		t.Errorf("loopback has %+v", c)
	}
	if _, err := FindNICClock("no-such-link"); err == nil || errors.Is(err, ErrNoNICClock) {
		t.Errorf("an interface that does not exist: %v", err)
	}
}

// A clock whose device is not there, or is no clock, is not readable, and the error says which.
func TestUnreadable(t *testing.T) {
	for device, want := range map[string]error{"/dev/no-such-clock": unix.ENOENT, "/dev/null": unix.EINVAL} {
		c := &NICClock{Device: device}
		if err := c.Readable(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", device, err, want)
		}
	}
}

// Instants of a clock that runs faster and begins elsewhere become those of
// CLOCK_MONOTONIC; after it was set, and of instants that cannot be, none is said.
func TestFollower(t *testing.T) {
	const ms = int64(1_000_000)
	f := newFollower(nil)
	if _, ok := f.monotonic(0, 0); ok {
		t.Error("before anything was read")
	}
	other := func(monotonic int64) int64 { return 5_000_000*ms + monotonic + monotonic/10_000 } // 100 ppm faster
	for i := range int64(20) {
		at := i * 100 * ms
		f.add(look{other(at), at, 300})
	}
	at := 1950 * ms
	for _, c := range []struct {
		stamp, by int64
		ok        bool
	}{
		{other(at), at + 30_000, true},
		{other(at), at - 200, true}, // within what the readings are exact to
		{other(at), at - 2000, false},
		{other(at), at + 21*ms, false},
		{other(at) + 5000*ms, at + 5000*ms, false},
		{0, at, false},
	} {
		got, ok := f.monotonic(c.stamp, c.by)
		if want := min(at+300, c.by); ok != c.ok || ok && (got < want-20 || got > want+20) {
			t.Errorf("stamp %d before %d: %d, %t", c.stamp, c.by, got, ok)
		}
	}
	f.add(look{other(2000*ms) + 60_000*ms, 2000 * ms, 300}) // it was set
	if got, ok := f.monotonic(other(at), at+30_000); ok {
		t.Errorf("a stamp of before it was set: %d", got)
	}
	// The rate is not known then, and is learned anew.
	if got, ok := f.monotonic(other(2000*ms)+60_000*ms+5000, 2001*ms); !ok || got != 2000*ms+5000+300 {
		t.Errorf("a stamp of after it was set: %d, %t", got, ok)
	}
}

// What is read of two clocks is as exact as it says.
func TestFollowerReads(t *testing.T) {
	const ahead = 1_000_000_000_000
	var real int64
	readings := map[int64]int64{}
	f := newFollower(func() (int64, error) {
		now, err := gettime(unix.CLOCK_MONOTONIC)
		real = now
		readings[now+ahead] = now
		return now + ahead, err
	})
	if err := f.look(); err != nil || real == 0 {
		t.Fatal(err)
	}
	r := f.latest.Load()
	if d := r.look.monotonic - readings[r.other]; d > r.width || -d > r.width {
		t.Errorf("%d ns away, and said to be exact to %d", d, r.width)
	}
	broken := newFollower(func() (int64, error) { return 0, unix.ENODEV })
	if err := broken.look(); err == nil {
		t.Error("a clock that cannot be read")
	}
}

// A frame that the hardware has stamped has that instant, if it can be, and else the one
// at which the driver handed it over.
func TestStampsByNIC(t *testing.T) {
	e := mustEngine(t, Config{Chunks: 256})
	p, a := e.Worker(0).Pool(), e.Arena()
	began := e.clock.began
	nic := newFollower(nil)
	nic.add(look{7_000_000, began, 100})
	var n PortCounters
	for _, c := range []struct {
		hardware uint64
		follower *follower
		want     frame.Time
		byNIC    uint64
	}{
		{7_000_000 + 40_000, nic, 40_100, 1},
		{7_000_000 + 90_000_000, nic, 50_000, 1}, // behind the handing over
		{0, nic, 50_000, 1},
		{7_000_000 + 40_000, nil, 50_000, 1},
	} {
		b := make([]byte, 64)
		b[12], b[13] = 0x88, 0xf7
		r := p.New(b)
		meta := a.Before(r, bpf.StampLen)
		binary.NativeEndian.PutUint64(meta, 0x67737769746368)
		binary.NativeEndian.PutUint64(meta[8:], uint64(began+50_000))
		binary.NativeEndian.PutUint64(meta[16:], c.hardware)
		e.clock.stamp(frame.Second, a, []frame.Ref{r}, &n, c.follower)
		if got := a.Meta(r).Stamp - frame.Time(e.clock.within); got != c.want || n.StampedByNIC != c.byNIC {
			t.Errorf("stamp %d: %d, want %d; %d by the hardware", c.hardware, got, c.want, n.StampedByNIC)
		}
		p.Free(r)
	}
	if n.Stamped != 4 || n.Unstamped != 0 {
		t.Errorf("%+v", n)
	}
}
