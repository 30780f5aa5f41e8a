package clocktime

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ntpSegment is the segment of NTP's shared memory driver on 64-bit Linux, which chrony's
// SHM reference clock and gpsd know as well (struct shmTime of ntpd's refclock_shm.c).
type ntpSegment struct {
	mode      int32
	count     int32 // odd or not, another behind each sample
	clockSec  int64
	clockUsec int32
	_         int32
	recvSec   int64
	recvUsec  int32
	leap      int32
	precision int32 // of samples, as a power of two of a second
	nsamples  int32
	valid     int32
	clockNsec uint32
	recvNsec  uint32
	_         [8]int32
}

// ntpKey is the key of unit 0: "NTP0".
const ntpKey = 0x4e545030

// NTPUnits is how many units there are.
const NTPUnits = 256

// NTPSegment hands times to chronyd or ntpd by shared memory.
type NTPSegment struct {
	b []byte
	p *ntpSegment
}

// OpenNTPSegment attaches the segment of a unit, and makes it if there is none. Those of
// units 0 and 1 are for root alone.
func OpenNTPSegment(unit int) (*NTPSegment, error) {
	if unit < 0 || unit >= NTPUnits {
		return nil, fmt.Errorf("there is no unit %d of NTP's shared memory: they are 0 to %d", unit, NTPUnits-1)
	}
	mode := 0o666
	if unit < 2 {
		mode = 0o600
	}
	id, err := unix.SysvShmGet(ntpKey+unit, int(unsafe.Sizeof(ntpSegment{})), unix.IPC_CREAT|mode)
	if err != nil {
		return nil, fmt.Errorf("unit %d of NTP's shared memory (ipcs -m shows who has it): %w", unit, err)
	}
	b, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("unit %d of NTP's shared memory: %w", unit, err)
	}
	return &NTPSegment{b: b, p: (*ntpSegment)(unsafe.Pointer(&b[0]))}, nil
}

// Write hands over a sample: when the machine's clock said received it was true, give or
// take eps.
func (s *NTPSegment) Write(true, received time.Time, eps time.Duration) {
	p := s.p
	atomic.StoreInt32(&p.valid, 0)
	p.mode = 1 // the reader compares count before and behind
	atomic.AddInt32(&p.count, 1)
	p.clockSec, p.clockUsec, p.clockNsec = true.Unix(), int32(true.Nanosecond()/1000), uint32(true.Nanosecond())
	p.recvSec, p.recvUsec, p.recvNsec = received.Unix(), int32(received.Nanosecond()/1000), uint32(received.Nanosecond())
	p.leap, p.precision = 0, precision(eps)
	atomic.AddInt32(&p.count, 1)
	atomic.StoreInt32(&p.valid, 1)
}

// precision is the least power of two of a second that is not less than eps.
func precision(eps time.Duration) int32 {
	for p := int32(-30); p < 0; p++ {
		if time.Duration(1e9>>uint(-p)) >= eps {
			return p
		}
	}
	return int32(bits.Len64(uint64(eps / time.Second)))
}

// Close ends the writing. The segment stays, as NTP's programs expect.
func (s *NTPSegment) Close() error { return unix.SysvShmDetach(s.b) }

// Sample is what the machine's clock said, and the interval in which the root's time lay
// then.
type Sample struct {
	Machine, Earliest, Latest time.Time
}

// Sample compares the machine's clock to the root's. It is looked at between two looks at
// CLOCK_MONOTONIC, several times; of these the one counts for which that took the least.
// Half of what it took is part of the interval.
func (c *Clock) Sample() (s Sample, err error) {
	least := int64(1 << 62)
	m, err := c.Image()
	if err != nil {
		return s, err
	}
	for range 5 {
		before, err := clock(unix.CLOCK_MONOTONIC)
		if err != nil {
			return s, err
		}
		machine, err := clock(unix.CLOCK_REALTIME)
		if err != nil {
			return s, err
		}
		after, err := clock(unix.CLOCK_MONOTONIC)
		if err != nil {
			return s, err
		}
		if after-before >= least {
			continue
		}
		least = after - before
		from, _, err := m.Between(before)
		if err != nil {
			return s, err
		}
		_, to, err := m.Between(after)
		if err != nil {
			return s, err
		}
		s = Sample{Machine: time.Unix(0, machine), Earliest: time.Unix(0, from), Latest: time.Unix(0, to)}
	}
	return s, nil
}

func clock(id int32) (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		return 0, fmt.Errorf("clock_gettime: %w", err)
	}
	return t.Nano(), nil
}
