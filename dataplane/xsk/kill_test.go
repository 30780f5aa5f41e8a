package xsk

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// childNetNS has a copy of the test binary open a port and wait.
const childNetNS = "XSK_TEST_CHILD_NETNS"

func TestMain(m *testing.M) {
	if ns := os.Getenv(childNetNS); ns != "" {
		holdPort(ns)
	}
	os.Exit(m.Run())
}

// holdPort opens a port, says so, and waits to be killed.
func holdPort(ns string) {
	u, err := NewUMEM(512, 2048, Options{})
	if err == nil {
		_, err = OpenPort(u, PortConfig{Interface: "s0", Socket: Config{NetNS: ns}})
	}
	fmt.Println("open:", err)
	_, _ = os.Stdin.Read(make([]byte, 1)) // the parent never writes
	os.Exit(1)
}

// A killed process leaves no program and no socket behind.
func TestKilledProcessLeavesNothing(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	for range 3 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childNetNS+"="+l.ns)
		stdin, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		attached := l.attached("s0")
		_ = child.Process.Kill()
		_ = child.Wait()
		stdin.Close()
		if err != nil || line != "open: <nil>\n" || attached == 0 {
			t.Fatalf("child said %q (%v), program %d attached", line, err, attached)
		}
		// The kernel closes a dead process's files before its parent learns
		// of it, but lets go of the link a moment later.
		for l.attached("s0") != 0 {
		}
		g := newGroup(t, 512, 2048)
		g.open(l, "s0", Config{FillSize: 64})
		g.closeAll()
		if id := l.attached("s0"); id != 0 {
			t.Fatalf("program %d is attached after close", id)
		}
	}
}
