package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gswitch/control/api"
)

// A host's TCP runs against Linux over a switch that loses, reorders and damages frames, with
// small windows as well: curl takes and brings bytes, the kernel's bytes come back from
// the echo as they were, and ghost tcp takes and brings bytes at the kernel's listeners. A
// port without a listener refuses. The record of the host replays to the bit, though it
// holds no payload.
func TestGhostTCP(t *testing.T) {
	for _, c := range []struct{ name, tcp string }{
		{"cubic", "{mss: 1460, services: [{port: 80, kind: http}, {port: 5201, kind: iperf3}, {port: 7, kind: echo}, {port: 9, kind: discard}]}"},
		{"small windows", "{congestion: reno, mss: 500, receive_buffer: 6kB, min_rto: 50ms, services: [{port: 80, kind: http}, {port: 5201, kind: iperf3}, {port: 7, kind: echo}, {port: 9, kind: discard}]}"},
	} {
		t.Run(c.name, func(t *testing.T) { ghostTCP(t, c.tcp) })
	}
}

func ghostTCP(t *testing.T, section string) {
	l := newLab(t, 2, labOptions{})
	dir := t.TempDir()
	var ports strings.Builder
	for i := range l.hosts {
		fmt.Fprintf(&ports, "  - {interface: d%d, netns: %s, rate: 400Mbps, burst: 20ms, faults: {loss: 0.3%%, reorder: 1%%, reorder_delay: 200us, corrupt: 0.05%%, flip: 0.1%%, seed: %d}}\n", i, l.sw, i+1)
	}
	file := filepath.Join(dir, "switch.yaml")
	write(t, file, "version: 1\nswitches:\n- name: s1\n  ports:\n"+ports.String())
	sw := run(t, "-c", file)
	file = filepath.Join(dir, "host.yaml")
	write(t, file, fmt.Sprintf("version: 1\nname: g0\nnetns: %s\ninterface: eth0\naddress: 10.0.0.1/24\nrate: 800Mbps\nburst: 5ms\ntelemetry: {format: none}\ncongestion: dctcp\ntcp: %s\n", l.hosts[0].ns, section))
	linux := l.hosts[1]
	linux.address(t, []string{"10.0.0.2/24"})
	d := launchProgram(t, ghost, filepath.Join(t.TempDir(), "sock"), "-c", file, "--record", dir)
	d.await()

	t.Run("curl", func(t *testing.T) {
		need(t, "curl")
		out := curl(t, linux, "--output", "-", "http://10.0.0.1/2MB")
		if len(out) != 2_000_000 || strings.Trim(string(out), "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("GET gave %d bytes", len(out))
		}
		body := filepath.Join(dir, "body")
		write(t, body, strings.Repeat("x", 1_500_000))
		if out := curl(t, linux, "--data-binary", "@"+body, "http://10.0.0.1/"); string(out) != "1500000 bytes\n" {
			t.Errorf("POST was answered by %.100q", out)
		}
		if out := curl(t, linux, "--output", "-", "--write-out", "%{http_code}", "http://10.0.0.1/some"); !strings.HasSuffix(string(out), "404") {
			t.Errorf("a size that is none: %.200q", out)
		}
	})
	t.Run("iperf3", func(t *testing.T) {
		need(t, "iperf3")
		iperfs(t, linux)
	})
	data := make([]byte, 1_000_000)
	rand.Read(data)

	// The kernel's bytes come back.
	in(t, linux.ns, func() error {
		c, err := net.Dial("tcp4", "10.0.0.1:7")
		if err != nil {
			return err
		}
		defer c.Close()
		go func() {
			_, _ = c.Write(data) // what is missing does not come back
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		back, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(back, data) {
			return fmt.Errorf("%d of %d bytes came back from the echo: %v", len(back), len(data), err)
		}
		if c, err := net.Dial("tcp4", "10.0.0.1:81"); err == nil {
			c.Close()
			t.Error("a port where nobody listens took a connection")
		} else if !strings.Contains(err.Error(), "refused") {
			t.Errorf("a port where nobody listens: %v", err)
		}
		return nil
	})

	// The host connects to the kernel, which sends back what it gets.
	in(t, linux.ns, func() error {
		k, err := net.Listen("tcp4", "10.0.0.2:9000")
		if err != nil {
			return err
		}
		t.Cleanup(func() { k.Close() })
		go func() {
			c, err := k.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c) // what is missing does not come back
			c.Close()
		}()
		return nil
	})
	var back, said bytes.Buffer
	cmd := exec.Command(ghost, "--socket", d.socket, "tcp", "connect", "10.0.0.2:9000")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), &back, &said
	if err := cmd.Run(); err != nil || sha256.Sum256(back.Bytes()) != sha256.Sum256(data) {
		t.Errorf("%v: %d of %d bytes came back: %s", err, back.Len(), len(data), said.String())
	}
	t.Log(strings.TrimSpace(said.String()))
	if out, code := d.try("tcp", "connect", "10.0.0.2:9001"); code != 1 || !strings.Contains(out, "refused") {
		t.Errorf("a port of the kernel where nobody listens: exit code %d: %s", code, out)
	}
	if out, code := d.try("tcp", "connect", "10.0.0.2"); code != 2 {
		t.Errorf("an address without a port: exit code %d: %s", code, out)
	}

	// The kernel connects to a port on which a verb listens.
	back.Reset()
	cmd = exec.Command(ghost, "--socket", d.socket, "tcp", "listen", "9002")
	cmd.Stdin, cmd.Stdout = strings.NewReader("welcome"), &back
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in(t, linux.ns, func() error {
		var c net.Conn
		eventually(t, "the verb listens", func() (err error) {
			c, err = net.Dial("tcp4", "10.0.0.1:9002")
			return err
		})
		defer c.Close()
		if _, err := c.Write(data[:100_000]); err != nil {
			return err
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			return err
		}
		if text, err := io.ReadAll(c); err != nil || string(text) != "welcome" {
			return fmt.Errorf("%q, %v", text, err)
		}
		return nil
	})
	if err := cmd.Wait(); err != nil || !bytes.Equal(back.Bytes(), data[:100_000]) {
		t.Errorf("%v: %d bytes came to the verb", err, back.Len())
	}

	// What is open is shown.
	in(t, linux.ns, func() error {
		c, err := net.Dial("tcp4", "10.0.0.1:9")
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("some")); err != nil {
			return err
		}
		eventually(t, "the connection is shown", func() error {
			for _, s := range asked(d, &api.TCPStreams{}, "show", "tcp").Streams {
				if s.Remote == c.LocalAddr().String() && s.State == "ESTABLISHED" && s.Accepted {
					return nil
				}
			}
			return fmt.Errorf("%s", d.do("show", "tcp"))
		})
		return nil
	})
	d.stop()
	sw.stop()
	files, err := filepath.Glob(filepath.Join(dir, "*.grec"))
	if err != nil || len(files) != 1 {
		t.Fatalf("records %v, %v", files, err)
	}
	out, ok := replayOf(t, files[0])
	if t.Log(strings.TrimSpace(out)); !ok || !strings.Contains(out, ": identical") {
		t.Errorf("the replay says\n%s", out)
	}
	if out, ok := replayOf(t, files[0], "--until", "retransmissions > 0", "--", "ghost", "show", "tcp"); !ok || !strings.Contains(out, "10.0.0.2:") {
		t.Errorf("when something was sent again: %s", out)
	}
}

// iperfs runs iperf3 in the namespace of a host against 10.0.0.1, both ways, and compares
// what both ends counted.
func iperfs(t *testing.T, h *host) {
	t.Helper()
	for _, args := range [][]string{{"-n", "600K"}, {"-n", "600K", "-R"}, {"-n", "900K", "-P", "3"}} {
		type sum struct{ Bytes uint64 }
		type result struct {
			Error string
			End   struct {
				Sent     sum `json:"sum_sent"`
				Received sum `json:"sum_received"`
			}
		}
		var out result
		var text []byte
		var err error
		// The end of the test before may have been lost on the way, and come later.
		eventually(t, "a server of iperf3 that is free", func() error {
			in(t, h.ns, func() error {
				cmd := exec.Command("iperf3", append([]string{"-c", "10.0.0.1", "--json"}, args...)...)
				text, _ = cmd.Output() // its JSON says what is wrong
				return nil
			})
			out = result{}
			if err = json.Unmarshal(text, &out); strings.Contains(out.Error, "server is busy") {
				return errors.New(out.Error)
			}
			return nil
		})
		// The receiver may not have read all when the sender ends the test.
		back := slices.Contains(args, "-R")
		if err != nil || out.Error != "" || back && out.End.Received.Bytes < 600_000 || !back && (out.End.Sent.Bytes < 600_000 || out.End.Received.Bytes > out.End.Sent.Bytes) {
			t.Errorf("iperf3 %v: %v, %+v: %.500s", args, err, out, text)
		}
	}
	var text []byte
	in(t, h.ns, func() error {
		text, _ = exec.Command("iperf3", "-c", "10.0.0.1", "-u", "--json").Output()
		return nil
	})
	if !strings.Contains(string(text), "not implemented") {
		t.Errorf("iperf3 -u: %.300s", text)
	}
}

// curl runs curl in the namespace of a host and returns what it prints.
func curl(t *testing.T, h *host, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("curl", append([]string{"--silent", "--show-error"}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	var out []byte
	in(t, h.ns, func() (err error) {
		if out, err = cmd.Output(); err != nil {
			t.Errorf("curl %v: %v: %s", args, err, said.String())
		}
		return nil
	})
	return out
}
