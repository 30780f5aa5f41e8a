// Package e2e drives the built programs as a user does: gswitch runs as a
// process on AF_XDP ports between network namespaces, hosts send and receive
// over the kernel's stack or raw sockets, and what is asserted is what arrives
// and what the command line prints.
//
// Nothing here passes or fails by the clock. Where something is waited for,
// the wait ends when it happens; patience only bounds how long a hanging
// program may hold up the others.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// churnFor is how long the churn goes on: long runs are asked for by
//
//	go test ./e2e -run Churn -timeout 0 -churn 30m
var churnFor = flag.Duration("churn", 12*time.Second, "how long TestChurn goes on")

// patience bounds every wait. It is far beyond what anything takes.
const patience = 60 * time.Second

// Paths of the programs under test, built once.
var gswitch, ghost, gfabric, gcollect string

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Geteuid() == 0 {
		removeLeftovers()
	}
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	gswitch, ghost, gfabric, gcollect = filepath.Join(dir, "gswitch"), filepath.Join(dir, "ghost"), filepath.Join(dir, "gfabric"), filepath.Join(dir, "gcollect")
	// Without its profile gfabric shares what was compiled for the others.
	build := exec.Command("go", "build", "-pgo=off", "-o", dir, "gswitch/cmd/gswitch", "gswitch/cmd/ghost", "gswitch/cmd/gfabric", "gswitch/cmd/gcollect")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// prefix begins the names of all namespaces of these tests. The number of the
// process follows.
const prefix = "e2e-"

// removeLeftovers deletes the namespaces of test processes that are gone.
func removeLeftovers() {
	names, err := os.ReadDir("/run/netns")
	if err != nil {
		return // there is none
	}
	for _, n := range names {
		rest, ours := strings.CutPrefix(n.Name(), prefix)
		number, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(number)
		if !ours || err != nil || unix.Kill(pid, 0) == nil {
			continue
		}
		if err := netns.DeleteNamed(n.Name()); err != nil {
			fmt.Fprintf(os.Stderr, "left over by a killed run, and cannot be removed: %s: %v\n", n.Name(), err)
		}
	}
}
