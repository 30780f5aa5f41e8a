package capturetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Collect gives datagrams to goflow2, a collector of flows, and returns the flows that
// it found, as many as are wanted. The protocol is netflow (IPFIX, too) or sflow. It
// skips the test where there is no goflow2.
func Collect(t *testing.T, protocol string, datagrams [][]byte, wanted int) []map[string]any {
	t.Helper()
	program, err := exec.LookPath("goflow2")
	if err != nil {
		if os.Getenv("GSWITCH_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("goflow2 is not installed")
	}
	port := freePort(t)
	c := exec.Command(program, "-addr", "", "-listen", fmt.Sprintf("%s://127.0.0.1:%d?workers=1", protocol, port))
	var log bytes.Buffer
	c.Stderr = &log
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		c.Process.Kill()
		<-ended
	})
	lines := make(chan string)
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
		c.Wait()
	}()
	for !listens(t, port) {
		select {
		case <-ended:
			t.Fatalf("goflow2 ended\n%s", log.String())
		case <-time.After(time.Millisecond):
		}
	}
	to, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for _, b := range datagrams {
		if _, err := to.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	var flows []map[string]any
	for len(flows) < wanted {
		line, ok := <-lines
		if !ok {
			t.Fatalf("goflow2 ended\n%s", log.String())
		}
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		flows = append(flows, f)
	}
	return flows
}

// freePort returns a UDP port that is free.
func freePort(t *testing.T) int {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port
}

// listens reports whether a UDP port of the loopback address is taken.
func listens(t *testing.T, port int) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(b), fmt.Sprintf(" 0100007F:%04X ", port))
}
