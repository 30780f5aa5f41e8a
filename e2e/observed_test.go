package e2e

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// counter reads a counter of the kernel's TCP in a namespace (nstat).
func counter(t testing.TB, ns, name string) (v int) {
	t.Helper()
	in(t, ns, func() error {
		b, err := os.ReadFile("/proc/thread-self/net/netstat")
		if err != nil {
			return err
		}
		lines := strings.Split(string(b), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			values := strings.Fields(lines[i+1])
			for k, field := range strings.Fields(lines[i]) {
				if field == name {
					v, err = strconv.Atoi(values[k])
					return err
				}
			}
		}
		return fmt.Errorf("the kernel has no counter %s", name)
	})
	return v
}

// retransmitted asks the kernel how many segments a connection sent again, when all it
// sent is acknowledged.
func retransmitted(t testing.TB, c *net.TCPConn) (n int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all is acknowledged", func() (err error) {
		if e := raw.Control(func(fd uintptr) {
			var info *unix.TCPInfo
			if info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err != nil {
				return
			}
			if n = int(info.Total_retrans); info.Unacked != 0 || info.Notsent_bytes != 0 {
				err = fmt.Errorf("%d segments and %d bytes are left", info.Unacked, info.Notsent_bytes)
			}
		}); e != nil {
			return e
		}
		return err
	})
	return n
}

// What a capture of the kernel's TCP shows of retransmissions, timeouts and closed windows is
// what the kernel counts itself.
func TestDiagnosisOfTheKernel(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
  - name: s1
    ports:
      - {name: left, interface: d0, netns: %[1]s}
      - {name: right, interface: d1, netns: %[1]s, rate: 400Mbps, faults: {loss: 1%%, seed: 3}}
`, l.sw))
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.0.%d/24", i+1)})
	}
	dump := d.capture("--in")
	var listener net.Listener
	in(t, l.hosts[1].ns, func() (err error) {
		listener, err = net.Listen("tcp", "10.0.0.2:5001")
		return err
	})
	defer listener.Close()
	var dialled net.Conn
	in(t, l.hosts[0].ns, func() (err error) {
		dialled, err = net.DialTimeout("tcp", "10.0.0.2:5001", patience)
		return err
	})
	defer dialled.Close()
	from := dialled.(*net.TCPConn)
	to, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	zeros, timeouts := counter(t, l.hosts[1].ns, "TCPToZeroWindowAdv"), counter(t, l.hosts[0].ns, "TCPTimeouts")
	content := make([]byte, 24<<20)
	rand.Read(content) //nolint:errcheck // it never fails
	send := func(n int) chan error {
		done := make(chan error, 1)
		go func() { _, err := from.Write(content[:n]); done <- err }()
		return done
	}
	sent := send(len(content))
	if _, err := io.CopyN(io.Discard, to, int64(len(content))); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	// A reader that stops closes its window.
	for range 2 {
		before := counter(t, l.hosts[1].ns, "TCPToZeroWindowAdv")
		sent := send(len(content))
		eventually(t, "the window is closed", func() error {
			if counter(t, l.hosts[1].ns, "TCPToZeroWindowAdv") == before {
				return fmt.Errorf("it is open")
			}
			return nil
		})
		if _, err := io.CopyN(io.Discard, to, int64(len(content))); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	// Where the other host is away, the timer runs out again and again.
	link(t, l.hosts[1].ns, "eth0", netlink.LinkSetDown)
	before := counter(t, l.hosts[0].ns, "TCPTimeouts")
	sent = send(1 << 20)
	eventually(t, "the timer has run out three times", func() error {
		if n := counter(t, l.hosts[0].ns, "TCPTimeouts") - before; n < 3 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	link(t, l.hosts[1].ns, "eth0", netlink.LinkSetUp)
	if _, err := io.CopyN(io.Discard, to, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	again := retransmitted(t, from)
	timeouts = counter(t, l.hosts[0].ns, "TCPTimeouts") - timeouts
	zeros = counter(t, l.hosts[1].ns, "TCPToZeroWindowAdv") - zeros
	lost := int(l.hosts[0].lost(t))
	dump.end()
	out, err := exec.Command(gfabric, "diagnose", dump.file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("the kernel counts %d sent again, %d timeouts, %d windows closed; %d frames were lost before the switch\n%s", again, timeouts, zeros, lost, out)
	var seen, late, closed int
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "the capture lost "):
			n, err := strconv.Atoi(f[3])
			if lost += n; err != nil {
				t.Fatal(err)
			}
		case len(f) == 11 && f[0] == from.LocalAddr().String():
			if seen, err = strconv.Atoi(f[6]); err == nil {
				late, err = strconv.Atoi(f[7])
			}
		case len(f) == 11 && f[1] == from.LocalAddr().String():
			closed, err = strconv.Atoi(f[10])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if off := max(again-seen, seen-again); again < 200 || off > again/100+lost {
		t.Errorf("%d segments were sent again, %d are found, and %d frames were lost before the switch and by the capture", again, seen, lost)
	}
	if timeouts < 3 || max(late-timeouts, timeouts-late) > timeouts/100+lost {
		t.Errorf("the timer ran out %d times, %d are found", timeouts, late)
	}
	if zeros < 2 || max(closed-zeros, zeros-closed) > lost {
		t.Errorf("the window was closed %d times, %d are found", zeros, closed)
	}
}
