package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// markerEnv carries the fabric's marker to every process that the fabric
// starts and on to their children.
const markerEnv = "GFABRIC"

// readyTimeout bounds how long a gswitch may take to say that it forwards.
const readyTimeout = 30 * time.Second

// switchNice puts switches before the hosts that they share processors with: a
// switch that is late is another network. A lab that may not raise priorities
// does without.
const switchNice = -10

// self identifies the calling process.
func self() procID {
	id, _ := identify(os.Getpid())
	return id
}

// identify returns the identity of a running process.
func identify(pid int) (procID, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procID{}, false
	}
	// The second field is the command in parentheses and may hold anything.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return procID{}, false
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	return procID{pid, start}, err == nil
}

// alive reports whether the process still runs.
func (p procID) alive() bool {
	now, ok := identify(p.PID)
	return ok && now == p && p.PID != 0
}

// start runs a gswitch in its namespace, with its output in its log, and
// notes it. It does not wait for it to be ready.
func (s *state) start(p *procState, program string) (*exec.Cmd, error) {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ns, err := netns.Get() // of gfabric
	if p.Namespace != "" {
		ns, err = openNamespace(p.Namespace, s.marker())
	}
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	cmd := exec.Command(program, append([]string{"run", "-c", p.Config}, p.run...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), markerEnv+"="+s.marker())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C at gfabric is not for the switches
	err = inNamespace(ns, func() error {
		unix.Setpriority(unix.PRIO_PROCESS, 0, switchNice) // of this thread: the child inherits it
		return cmd.Start()
	})
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}
	// A session of its own is a scheduling group of its own (sched(7),
	// autogroup), where the kernel has them; the group's value counts then.
	os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte(strconv.Itoa(switchNice)), 0)
	p.Proc, _ = identify(cmd.Process.Pid)
	return cmd, s.save()
}

// awaitReady waits until a gswitch has printed its line with the word ready.
func awaitReady(ctx context.Context, cmd *exec.Cmd, p *procState) error {
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(readyTimeout)
	for {
		if text, err := os.ReadFile(p.Log); err == nil && hasReady(text) {
			return nil
		}
		select {
		case err := <-exited:
			if err == nil {
				err = errors.New("it ended")
			}
			return fmt.Errorf("%s did not start: %w\n%s", p.Name, err, tail(p.Log))
		case <-deadline:
			return fmt.Errorf("%s did not say ready within %v; its log %s ends:\n%s", p.Name, readyTimeout, p.Log, tail(p.Log))
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func hasReady(log []byte) bool {
	for line := range bytes.Lines(log) {
		if bytes.HasSuffix(line, []byte("\n")) && slices.Contains(strings.FieldsFunc(string(line), notLetter), "ready") {
			return true
		}
	}
	return false
}

func notLetter(r rune) bool { return r < 'A' || r > 'z' }

// tail returns the last lines of a log, indented.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "  (no log)"
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-12):], "\n  ")
}

// members returns the processes that bear the marker: the switches and
// everything that was started in the hosts, but not the caller and those
// that it descends from.
func (s *state) members() []procID {
	entry := []byte(markerEnv + "=" + s.marker() + "\x00")
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	spare := ancestors()
	var v []procID
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || slices.Contains(spare, pid) {
			continue
		}
		env, err := os.ReadFile(d + "/environ")
		if err != nil || !bytes.HasPrefix(env, entry) && !bytes.Contains(env, append([]byte{0}, entry...)) {
			continue
		}
		if id, ok := identify(pid); ok {
			v = append(v, id)
		}
	}
	return v
}

// ancestors returns the caller's number and those of its parents.
func ancestors() []int {
	v := []int{os.Getpid()}
	for pid := os.Getppid(); pid > 1; {
		v = append(v, pid)
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			break
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(f) < 2 {
			break
		}
		pid, _ = strconv.Atoi(f[1])
	}
	return v
}

// Time that a process has to end by itself, and then to be gone.
const (
	termGrace = 3 * time.Second
	killGrace = 5 * time.Second
)

// stopMembers ends all processes of the fabric: asks first, then kills.
func (s *state) stopMembers() error {
	for _, step := range []struct {
		sig   unix.Signal
		grace time.Duration
	}{{unix.SIGTERM, termGrace}, {unix.SIGKILL, killGrace}} {
		v := s.members()
		if len(v) == 0 {
			return nil
		}
		var fds []unix.PollFd
		for _, p := range v {
			fd, err := unix.PidfdOpen(p.PID, 0)
			if err != nil {
				continue
			}
			defer unix.Close(fd)
			if !p.alive() { // the number was used again before the descriptor held it
				continue
			}
			if unix.PidfdSendSignal(fd, step.sig, nil, 0) == nil {
				fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
		}
		awaitExit(fds, step.grace)
	}
	if v := s.members(); len(v) > 0 {
		return fmt.Errorf("process %d of fabric %q does not end, even when killed", v[0].PID, s.Name)
	}
	return nil
}

// awaitExit waits until every process has ended, or the time is over.
func awaitExit(fds []unix.PollFd, grace time.Duration) {
	deadline := time.Now().Add(grace)
	for len(fds) > 0 {
		left := time.Until(deadline)
		if left <= 0 {
			return
		}
		if _, err := unix.Poll(fds, int(left.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		fds = slices.DeleteFunc(fds, func(f unix.PollFd) bool { return f.Revents != 0 })
	}
}
