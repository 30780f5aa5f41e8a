package control

import (
	"fmt"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/vswitch"
)

// try builds every switch in ordinary memory, to find out what the nodes would reject
// before anything is changed.
func try(c *config.Config) error {
	for i := range c.Switches {
		if err := trySwitch(c, &c.Switches[i]); err != nil {
			return err
		}
	}
	return nil
}

func trySwitch(c *config.Config, s *config.Switch) error {
	chunks := c.Frames()
	// The arena is as large as the engine's, since buffers are checked against it. It is
	// never touched, so it costs no memory.
	mem, err := unix.Mmap(-1, 0, chunks*c.Memory.Chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("address space for %d chunks of %d bytes: %w", chunks, c.Memory.Chunk, err)
	}
	defer unix.Munmap(mem)
	arena, err := frame.NewArena(mem, c.Memory.Chunk, frame.DefaultHeadroom)
	if err != nil {
		return err
	}
	depot := frame.NewDepot(arena)
	var pools []*frame.Pool
	for range s.WorkersUsed() {
		pools = append(pools, depot.NewPool(arena))
	}
	if _, err = vswitch.New(s.VSwitch(nil), pools); err != nil {
		return namePorts{err, s}
	}
	return nil
}

// namePorts is an error of a node, which knows only the numbers of ports.
type namePorts struct {
	error
	s *config.Switch
}

var portNumber = regexp.MustCompile(`\bport (\d+)\b`)

func (e namePorts) Error() string {
	return portNumber.ReplaceAllStringFunc(e.error.Error(), func(m string) string {
		n, err := strconv.Atoi(m[len("port "):])
		if err != nil || n >= len(e.s.Ports) {
			return m
		}
		return "port " + e.s.Ports[n].Name
	})
}

func (e namePorts) Unwrap() error { return e.error }

// Check returns what would prevent a configuration from working, without using any
// interface.
func Check(c *config.Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	return try(c.Resolved())
}
