package tcp

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// TestLinux runs the cases below in a network namespace of its own, against the
// kernel's TCP over a TUN device: bytes both ways, closing from either end, with
// losses, reordering and small windows.
func TestLinux(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("GSWITCH_CI") != "" {
			t.Fatal("CI runs as root")
		}
		t.Skip("it takes root to make a network namespace")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestInsideNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), "GSWITCH_TCP_INSIDE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestInsideNamespace/small_windows/dials=false")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

var (
	kernel = [4]byte{10, 9, 0, 1}
	us4    = [4]byte{10, 9, 0, 2}
)

// tun is the device and the bad network behind it.
type tun struct {
	f     *os.File
	start time.Time
	r     *rand.Rand
	lose  int // of a hundred, both ways
	swap  int // of a hundred from the kernel: behind the next
	held  []byte
	id    uint16
	in    chan []byte
}

func openTUN(t *testing.T) *tun {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	req, err := unix.NewIfreq("tcp0")
	if err != nil {
		t.Fatal(err)
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		t.Fatal(err)
	}
	link, err := netlink.LinkByName("tcp0")
	if err != nil {
		t.Fatal(err)
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: kernel[:], Mask: net.CIDRMask(24, 32)}}
	if err := errors.Join(netlink.AddrAdd(link, addr), netlink.LinkSetUp(link)); err != nil {
		t.Fatal(err)
	}
	d := &tun{f: os.NewFile(uintptr(fd), "tcp0"), start: time.Now(), r: rand.New(rand.NewPCG(1, 1)), in: make(chan []byte, 4096)}
	go func() {
		defer close(d.in)
		for {
			b := make([]byte, 2048)
			n, err := d.f.Read(b)
			if err != nil {
				return
			}
			d.in <- b[:n]
		}
	}()
	return d
}

func (d *tun) now() frame.Time { return frame.Time(time.Since(d.start)) }

func (d *tun) send(s *Segment, f Flow) {
	d.id++
	if d.r.IntN(100) < d.lose {
		return
	}
	d.f.Write(s.AppendPacket(nil, f, d.id))
}

// drive steps a connection until done says so. accept, if not nil, makes it of the
// first SYN.
func (d *tun) drive(t *testing.T, c *Conn, f Flow, accept func(Segment, Flow) (*Conn, Flow), app func(now frame.Time, c *Conn) (done bool)) *Conn {
	t.Helper()
	for {
		now := d.now()
		if c != nil {
			if c.Due() <= now {
				c.Advance(now)
			}
			if app(now, c) {
				return c
			}
			var s Segment
			for c.Next(now, &s) {
				d.send(&s, f)
			}
		}
		wait := time.Second
		if c != nil {
			if due := c.Due(); due != frame.Never {
				wait = min(max(time.Duration(due-d.now()), 0), wait)
			}
		}
		select {
		case b, ok := <-d.in:
			if !ok {
				t.Fatal("the device is gone")
			}
			switch {
			case d.r.IntN(100) < d.lose:
				continue
			case d.held == nil && d.r.IntN(100) < d.swap:
				d.held = b
				continue
			}
			for _, p := range [][]byte{b, d.held} {
				s, from, err := ParsePacket(p)
				switch {
				case err != nil:
				case c == nil && accept != nil && s.Flags&SYN != 0:
					c, f = accept(s, from.Reverse())
				case c != nil && from == f.Reverse():
					c.Receive(d.now(), &s)
				}
			}
			d.held = nil
		case <-time.After(wait):
		}
	}
}

func TestInsideNamespace(t *testing.T) {
	if os.Getenv("GSWITCH_TCP_INSIDE") == "" {
		return // TestLinux runs it, in a namespace
	}
	d := openTUN(t)
	port := uint16(30000)
	for _, c := range []struct {
		name       string
		lose, swap int
		size       int
		change     func(*Config)
	}{
		{"clean", 0, 0, 3 << 20, func(*Config) {}},
		{"reno without options", 0, 0, 1 << 20, func(c *Config) { c.SACK, c.Stamps, c.Control = false, false, "reno" }},
		{"losses", 2, 0, 1 << 20, func(*Config) {}},
		{"losses without SACK", 2, 0, 256 << 10, func(c *Config) { c.SACK = false }},
		{"reordering", 0, 10, 1 << 20, func(*Config) {}},
		{"both", 2, 5, 512 << 10, func(c *Config) { c.Control = "reno" }},
		{"small windows", 1, 2, 256 << 10, func(c *Config) { c.ReceiveBuffer, c.MaxReceive, c.MSS = 6000, 6000, 500 }},
	} {
		cfg := Default()
		cfg.TimeWait = 50 * ms
		c.change(&cfg)
		d.lose, d.swap = c.lose, c.swap
		data := make([]byte, c.size)
		for i := range data {
			data[i] = byte(d.r.Uint32())
		}
		for _, dial := range []bool{true, false} {
			port++
			t.Run(fmt.Sprintf("%s/dials=%t", c.name, dial), func(t *testing.T) { echo(t, d, cfg, data, port, dial) })
		}
	}
}

// echo sends data to the kernel, which sends it back and closes when we do; the
// bytes that come back are those that went.
func echo(t *testing.T, d *tun, cfg Config, data []byte, port uint16, dial bool) {
	served := make(chan error, 1)
	serve := func(conn net.Conn) {
		_, err := io.Copy(conn, conn)
		served <- errors.Join(err, conn.Close())
	}
	sum, wrote, got := sha256.New(), 0, 0
	b := make([]byte, 16<<10)
	app := func(now frame.Time, c *Conn) bool {
		wrote += c.Write(data[wrote:])
		if wrote == len(data) {
			c.CloseWrite()
		}
		for n := c.Read(now, b); n > 0; n = c.Read(now, b) {
			sum.Write(b[:n])
			got += n
		}
		return c.State() == Closed
	}
	var c *Conn
	var err error
	if dial {
		l, err := net.Listen("tcp4", net.JoinHostPort(net.IP(kernel[:]).String(), fmt.Sprint(port)))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			conn, err := l.Accept()
			if err != nil {
				served <- err
				return
			}
			serve(conn)
		}()
		f := Flow{Src: us4, Dst: kernel, SrcPort: port, DstPort: port}
		if c, err = Dial(d.now(), cfg, d.r.Uint32()); err != nil {
			t.Fatal(err)
		}
		c = d.drive(t, c, f, nil, app)
	} else {
		go func() {
			conn, err := net.Dial("tcp4", net.JoinHostPort(net.IP(us4[:]).String(), fmt.Sprint(port)))
			if err != nil {
				served <- err
				return
			}
			serve(conn)
		}()
		c = d.drive(t, nil, Flow{}, func(s Segment, f Flow) (*Conn, Flow) {
			if f.SrcPort != port {
				return nil, f
			}
			if c, err = Accept(d.now(), cfg, d.r.Uint32(), &s); err != nil {
				t.Fatal(err)
			}
			return c, f
		}, app)
	}
	if err := c.Err(); err != nil || got != len(data) || [32]byte(sum.Sum(nil)) != sha256.Sum256(data) {
		t.Errorf("%v: %d of %d bytes came back; %+v", err, got, len(data), c.Stats)
	}
	if err := <-served; err != nil {
		t.Errorf("the kernel's end: %v", err)
	}
	t.Logf("%+v, RTT %v", c.Stats, c.RTT().Duration())
}
