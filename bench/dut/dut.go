// Package dut holds the forwarders that are compared: gswitch in several
// shapes and its peers. Each takes the frames of port d0 to port d1 and back.
package dut

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gswitch/bench/testbed"
)

// DUT is a device under test.
type DUT struct {
	Name  string
	About string
	// Dst is the MAC address that the frames go to; "" = the sink's, for those that leave addresses alone.
	Dst string
	// DstIP is where the frames are addressed to; "" = the sink.
	DstIP string
	// Flows is how many flows are sent at least.
	Flows int
	// Missing says what is not installed, or "".
	Missing func(Env) string
	// Start starts it in the bed and returns, when it forwards, the processes
	// whose use of the processor is metered: none for what the kernel itself does.
	Start func(*testbed.Bed, Env) ([]*testbed.Proc, error)
	// FramesPerCall asks it how many frames it sent in a system call; nil where that is not known.
	FramesPerCall func(Env) (float64, error)
}

// Env is where the forwarders find things.
type Env struct {
	Bin    string // folder of the project's own binaries
	CPU    int    // core of the forwarder
	GenCPU int    // core of the generator
}

// All are the forwarders, in the order in which they are measured and shown.
func All() []DUT {
	return []DUT{gswitchL2, gswitchUnicast, gswitchRecorded, gswitchFull, gswitchChain, gswitchRated, gswitchRoCC, gswitchRoCCOften, gswitchHash, gswitchPaths, gswitchPair, gswitchTelemetry, gswitchTelemetryEncoded, gswitchTelemetryOnce, gswitchAdaptive, cL2fwd, asavie, testpmd, ovsXDP, ovsUser, bridge, direct}
}

// Of returns d under another name and with the project's binaries from another folder.
func (d DUT) Of(name, folder string) DUT {
	missing, start, perCall := d.Missing, d.Start, d.FramesPerCall
	d.Name = name
	d.Missing = func(e Env) string {
		e.Bin = folder
		return missing(e)
	}
	d.Start = func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		e.Bin = folder
		return start(b, e)
	}
	if perCall != nil {
		d.FramesPerCall = func(e Env) (float64, error) {
			e.Bin = folder
			return perCall(e)
		}
	}
	return d
}

// startup is the longest time that a forwarder takes until it is ready.
const startup = 30 * time.Second

// present returns a Missing for programs that must be in the path.
func present(programs ...string) func(Env) string {
	return func(Env) string {
		for _, p := range programs {
			if _, err := exec.LookPath(p); err != nil {
				return p + " is not installed"
			}
		}
		return ""
	}
}

// built returns a Missing for a program of the project's own.
func built(program string) func(Env) string {
	return func(e Env) string {
		if _, err := os.Stat(filepath.Join(e.Bin, program)); err != nil {
			return fmt.Sprintf("%s is not built (make build bench-tool)", filepath.Join(e.Bin, program))
		}
		return ""
	}
}

// one starts a single process that prints ready when it forwards.
func one(b *testbed.Bed, name, ready string, args ...string) ([]*testbed.Proc, error) {
	p, err := b.Start(testbed.DUT, name, args...)
	if err != nil {
		return nil, err
	}
	return []*testbed.Proc{p}, p.Ready(ready, startup)
}
