package dataplane

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// NICClock is the clock of an interface's hardware, which stamps frames of PTP
// (a PTP hardware clock of Linux).
type NICClock struct {
	Device string // /dev/ptp0
	filter int32  // what the driver is to stamp
}

// ErrNoNICClock says that an interface has none, or stamps no frames of PTP by it.
var ErrNoNICClock = errors.New("no clock of the hardware")

// FindNICClock returns that of an interface of this network namespace, as its driver
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

// nicClock is what a driver offers that may serve.
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

// Readable reports why the clock cannot be read.
func (c *NICClock) Readable() error {
	device, err := os.Open(c.Device)
	if err != nil {
		return err
	}
	_, err = gettime(unix.FdToClockID(int(device.Fd())))
	return errors.Join(err, device.Close())
}

// stamping has the driver stamp frames of PTP, and follows its clock. Where somebody had
// frames stamped before, what is stamped stays as it is. undo puts it back.
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

// ask has frames of PTP stamped, and returns what was before where that was nothing.
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

// follower knows what CLOCK_MONOTONIC says at an instant of another clock. Any
// goroutine may ask it.
type follower struct {
	read   func() (int64, error)
	looks  [followed]look // the last ones, in a ring
	n      int
	latest atomic.Pointer[relation]
}

// look is what both clocks said, in nanoseconds, within width of each other.
type look struct{ other, monotonic, width int64 }

// relation is by what an instant of the other clock is turned into one of CLOCK_MONOTONIC.
type relation struct {
	look
	rate int64 // by how much CLOCK_MONOTONIC is faster, in parts in 10^9
}

const (
	followEvery = 100 * time.Millisecond
	followed    = 10
	// stale is the age of the last look at which nothing is said any more: it should
	// be followEvery.
	stale = int64(2 * time.Second)
	// fastest is by how much two clocks may differ in rate. One that differs by more
	// was set, and its rate is not known.
	fastest = 1_000_000 // parts in 10^9
)

func newFollower(read func() (int64, error)) *follower { return &follower{read: read} }

// follow looks at the clock until stop.
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

// look reads both clocks. The quickest of several readings counts.
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

// add learns a look: the rate is that since the oldest one that is kept.
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

// monotonic is what CLOCK_MONOTONIC had said at an instant of the other clock, by what the
// readings of both are exact to, and not later than by, when the frame was handed over. ok is false where that cannot be: the clock was set,
// or is not read any more, or the stamp is of another clock.
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

// longestHanding is for how long a frame may be on its way from the wire to the XDP
// program: interrupts are put off by tens of microseconds, and a processor may be busy.
const longestHanding = int64(20 * time.Millisecond)
