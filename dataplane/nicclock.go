package dataplane

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// NICClock is the hardware clock of an interface with which it time-stamps PTP frames (a
// PTP hardware clock of Linux).
type NICClock struct {
	Device string // /dev/ptp0
	filter int32  // which frames the driver should stamp
}

// ErrNoNICClock reports that an interface has no such clock, or does not time-stamp PTP
// frames.
var ErrNoNICClock = errors.New("no clock of the hardware")

// FindNICClock returns the clock of an interface of this network namespace, as its driver
// reports it (ETHTOOL_GET_TS_INFO).
func FindNICClock(name string) (*NICClock, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("interface %s: stamps: %w", name, err)
	}
	defer unix.Close(fd)
	growStack() // as for ethtool: the kernel gets an address as a plain number
	info, err := unix.IoctlGetEthtoolTsInfo(fd, name)
	if err != nil {
		return nil, fmt.Errorf("interface %s: stamps: %w", name, err)
	}
	return nicClock(info)
}

// nicClock returns the clock that a driver offers, if it is suitable.
func nicClock(info *unix.EthtoolTsInfo) (*NICClock, error) {
	const raw = unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
	if info.Phc_index < 0 || info.So_timestamping&raw != raw {
		return nil, ErrNoNICClock
	}
	for _, f := range []int32{unix.HWTSTAMP_FILTER_PTP_V2_L2_EVENT, unix.HWTSTAMP_FILTER_PTP_V2_EVENT, unix.HWTSTAMP_FILTER_ALL} {
		if info.Rx_filters>>f&1 != 0 {
			return &NICClock{Device: fmt.Sprintf("/dev/ptp%d", info.Phc_index), filter: f}, nil
		}
	}
	return nil, ErrNoNICClock
}

// Readable returns an error if the clock cannot be read.
func (c *NICClock) Readable() error {
	device, err := os.Open(c.Device)
	if err != nil {
		return err
	}
	_, err = gettime(unix.FdToClockID(int(device.Fd())))
	return errors.Join(err, device.Close())
}

// stamping makes the driver stamp PTP frames and starts following its clock. If hardware
// time stamps were enabled already, their configuration is not changed. undo restores the
// previous state.
func (c *NICClock) stamping(name string) (f *follower, undo func() error, err error) {
	device, err := os.Open(c.Device)
	if err != nil {
		return nil, nil, fmt.Errorf("interface %s: stamps: %w", name, err)
	}
	id := unix.FdToClockID(int(device.Fd()))
	f = newFollower(func() (int64, error) { return gettime(id) })
	if err := f.look(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("interface %s: %s cannot be read: %w", name, c.Device, err), device.Close())
	}
	before, err := c.ask(name)
	if err != nil {
		return nil, nil, errors.Join(err, device.Close())
	}
	stop := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		f.follow(stop)
	}()
	return f, func() error {
		close(stop)
		<-gone
		err := device.Close()
		if before != nil {
			err = errors.Join(err, setStamps(name, before))
		}
		return err
	}, nil
}

// ask enables time stamps of PTP frames, and returns the previous configuration if they
// were disabled.
func (c *NICClock) ask(name string) (before *unix.HwTstampConfig, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("interface %s: stamps: %w", name, err)
	}
	defer unix.Close(fd)
	growStack()
	if before, err = unix.IoctlGetHwTstamp(fd, name); err != nil {
		return nil, fmt.Errorf("interface %s: stamps: %w", name, err)
	}
	if before.Rx_filter != unix.HWTSTAMP_FILTER_NONE {
		return nil, nil
	}
	want := *before
	want.Rx_filter = c.filter
	if err := unix.IoctlSetHwTstamp(fd, name, &want); err != nil {
		return nil, fmt.Errorf("interface %s: stamps: %w", name, err)
	}
	return before, nil
}

func setStamps(name string, to *unix.HwTstampConfig) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	growStack()
	return unix.IoctlSetHwTstamp(fd, name, to)
}

func gettime(id int32) (int64, error) {
	var t unix.Timespec
	err := unix.ClockGettime(id, &t)
	return t.Nano(), err
}

// follower maintains the relation between another clock and CLOCK_MONOTONIC. Any
// goroutine may use it.
type follower struct {
	read   func() (int64, error)
	looks  [followed]look // ring of the last readings
	n      int
	latest atomic.Pointer[relation]
}

// look is a simultaneous reading of both clocks in nanoseconds, with uncertainty width.
type look struct{ other, monotonic, width int64 }

// relation converts times of the other clock to CLOCK_MONOTONIC.
type relation struct {
	look
	rate int64 // how much faster CLOCK_MONOTONIC runs, in parts per 10^9
}

const (
	followEvery = 100 * time.Millisecond
	followed    = 10
	// stale is the age of the last reading from which conversions fail. Readings are
	// taken every followEvery.
	stale = int64(2 * time.Second)
	// fastest bounds the difference in rate between two clocks. A larger difference means
	// that one was set, and its rate is unknown.
	fastest = 1_000_000 // parts in 10^9
)

func newFollower(read func() (int64, error)) *follower { return &follower{read: read} }

// follow reads the clocks periodically until stop is closed.
func (f *follower) follow(stop <-chan struct{}) {
	t := time.NewTicker(followEvery)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			if f.look() != nil {
				f.latest.Store(nil)
				f.n = 0
			}
		}
	}
}

// look reads both clocks. It takes the quickest of several readings.
func (f *follower) look() error {
	var best look
	for i := range 8 {
		before, err := gettime(unix.CLOCK_MONOTONIC)
		if err != nil {
			return err
		}
		other, err := f.read()
		if err != nil {
			return err
		}
		after, err := gettime(unix.CLOCK_MONOTONIC)
		if err != nil {
			return err
		}
		if width := (after - before + 1) / 2; i == 0 || width < best.width {
			best = look{other, before + (after-before)/2, width}
		}
	}
	f.add(best)
	return nil
}

// add adds a reading. The rate is computed since the oldest one kept.
func (f *follower) add(l look) {
	r := &relation{look: l}
	if k := min(f.n, followed); k > 0 {
		first := f.looks[(f.n-k)%followed]
		if span := l.other - first.other; span > 0 && span < int64(time.Minute) {
			r.rate = int64(float64(l.monotonic-first.monotonic-span) * 1e9 / float64(span))
		}
		if r.rate > fastest || r.rate < -fastest || l.other <= first.other {
			f.n, r.rate = 0, 0 // it was set
		}
	}
	f.looks[f.n%followed] = l
	f.n++
	f.latest.Store(r)
}

// monotonic converts a time of the other clock to CLOCK_MONOTONIC, and adds the
// uncertainty of the readings. The result is at most by, the time at which the frame was
// handed over. ok is false if the conversion fails: the clock was set, or is no longer
// read, or the time stamp is of another clock.
func (f *follower) monotonic(other, by int64) (at int64, ok bool) {
	r := f.latest.Load()
	if r == nil {
		return 0, false
	}
	since := other - r.other
	if since > stale || since < -stale {
		return 0, false
	}
	at = r.look.monotonic + since + since*r.rate/1e9
	if at > by+r.width || at < by-longestHanding {
		return 0, false
	}
	return min(at+r.width, by), true
}

// longestHanding bounds the time of a frame from the wire to the XDP program: interrupts
// are delayed by tens of microseconds, and a processor may be busy.
const longestHanding = int64(20 * time.Millisecond)
