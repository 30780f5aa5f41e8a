package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Pinger measures round trips to a reflector. It spins on a packet socket, so
// that no wake-up of its own is measured.
type Pinger struct {
	Device string
	Frame  Frame
	Count  int
	Gap    time.Duration // from probe to probe
	CPU    int           // -1 = any
	Warmup int           // probes before those that count
}

// RTT is the distribution of the round trips, in microseconds.
type RTT struct {
	N    int     `json:"n"`
	Lost int     `json:"lost"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

const (
	timeout = 100 * time.Millisecond
	mark    = 0x67737762 << 32 // high half of a probe's number, at the start of the UDP payload
)

// Run sends the probes, one after another.
func (p Pinger) Run() (RTT, error) {
	out, err := p.Frame.Bytes()
	if err != nil {
		return RTT{}, err
	}
	dev, err := net.InterfaceByName(p.Device)
	if err != nil {
		return RTT{}, fmt.Errorf("%s: %w", p.Device, err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := pin(p.CPU); err != nil {
		return RTT{}, err
	}
	const ipv4 = unix.ETH_P_IP>>8 | unix.ETH_P_IP&0xff<<8 // network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, ipv4)
	if err != nil {
		return RTT{}, err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ipv4, Ifindex: dev.Index}); err != nil {
		return RTT{}, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return RTT{}, err
	}

	binary.BigEndian.PutUint16(out[ethLen+ipLen+6:], 0) // probes differ: they have none
	in := make([]byte, 2048)
	trips := make([]float64, 0, p.Count)
	lost := 0
	for i := range p.Count + p.Warmup {
		id := mark | uint64(i)
		binary.BigEndian.PutUint64(out[payload:], id)
		start := time.Now()
		if _, err := unix.Write(fd, out); err != nil {
			return RTT{}, fmt.Errorf("%s: send: %w", p.Device, err)
		}
		took, err := await(fd, in, id, start)
		switch {
		case err != nil:
			return RTT{}, fmt.Errorf("%s: receive: %w", p.Device, err)
		case i < p.Warmup:
		case took == 0:
			lost++
		default:
			trips = append(trips, float64(took.Nanoseconds())/1e3)
		}
		// Spin through the gap too: a thread that slept measures its own way back.
		for next := start.Add(p.Gap); time.Now().Before(next); {
		}
	}
	if len(trips) == 0 {
		return RTT{Lost: lost}, nil
	}
	slices.Sort(trips)
	at := func(q float64) float64 { return trips[min(int(q*float64(len(trips))), len(trips)-1)] }
	return RTT{N: len(trips), Lost: lost, Min: trips[0], P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: at(1)}, nil
}

// await spins until the probe id is back. It returns 0 if it does not come.
func await(fd int, buf []byte, id uint64, start time.Time) (time.Duration, error) {
	for {
		n, err := unix.Read(fd, buf)
		took := time.Since(start)
		switch {
		case err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return 0, err
		case err == nil && n >= payload+8 && binary.BigEndian.Uint64(buf[payload:]) == id:
			return took, nil
		case took > timeout:
			return 0, nil
		}
	}
}
