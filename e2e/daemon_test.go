package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"gswitch/control/api"
)

// daemon is a running gswitch.
type daemon struct {
	*exec.Cmd
	t      testing.TB
	socket string
	log    syncBuffer
	ready  chan error // nil when it printed ready, else what went wrong
	done   chan struct{}
}

// syncBuffer may be read while a process writes to it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// launch starts a switch and does not wait until it is ready.
func launch(t testing.TB, socket string, args ...string) *daemon {
	t.Helper()
	return launchProgram(t, gswitch, socket, args...)
}

// launchProgram starts gswitch or ghost.
func launchProgram(t testing.TB, program, socket string, args ...string) *daemon {
	t.Helper()
	c := exec.Command(program, append([]string{"run", "--socket", socket}, args...)...)
	// It must not outlive a test that is killed. The signal comes when the
	// thread dies that started it (prctl(2), PR_SET_PDEATHSIG).
	c.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return launchCommand(t, c, socket, c.Start)
}

// launchCommand starts a command that becomes a daemon.
func launchCommand(t testing.TB, c *exec.Cmd, socket string, start func() error) *daemon {
	t.Helper()
	d := &daemon{Cmd: c, t: t, socket: socket, ready: make(chan error, 1), done: make(chan struct{})}
	d.Stderr = &d.log
	out, err := d.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer close(d.done)
		err := start()
		started <- err
		if err != nil {
			return
		}
		r := bufio.NewReader(out)
		line, err := r.ReadString('\n')
		if err == nil && !strings.Contains(line, "ready") {
			err = fmt.Errorf("printed %q", line)
		}
		d.ready <- err
		io.Copy(io.Discard, r)
		d.Wait()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Process.Kill()
		<-d.done
		if t.Failed() {
			t.Logf("log of %v:\n%s", d.Args[1:], d.log.String())
		}
	})
	return d
}

// run starts a daemon and returns when it is ready.
func run(t testing.TB, args ...string) *daemon {
	t.Helper()
	d := launch(t, filepath.Join(t.TempDir(), "sock"), args...)
	d.await()
	return d
}

// runConfig starts a daemon from a document.
func runConfig(t testing.TB, yaml string) (d *daemon, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "switch.yaml")
	write(t, file, yaml)
	return run(t, "-c", file), file
}

func write(t testing.TB, file, text string) {
	t.Helper()
	// By renaming, so that no reader finds half a file.
	if err := errors.Join(os.WriteFile(file+".new", []byte(text), 0o644), os.Rename(file+".new", file)); err != nil {
		t.Fatal(err)
	}
}

// await returns when the daemon is ready.
func (d *daemon) await() {
	d.t.Helper()
	if err := <-d.ready; err != nil {
		<-d.done
		d.t.Fatalf("%v is not ready: %v; log:\n%s", d.Args, err, d.log.String())
	}
}

// stop ends the daemon as Ctrl-C does. It must end well and leave nothing.
func (d *daemon) stop(namespaces ...string) {
	d.t.Helper()
	if err := d.Process.Signal(unix.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	<-d.done
	if code := d.ProcessState.ExitCode(); code != 0 {
		d.t.Errorf("exit code %d; log:\n%s", code, d.log.String())
	}
	if log := d.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") || strings.Contains(log, "level=ERROR") {
		d.t.Errorf("errors in the log:\n%s", log)
	}
	for _, ns := range namespaces {
		if left := xdpPrograms(d.t, ns); left != nil {
			d.t.Errorf("programs are left on %v", left)
		}
	}
	if _, err := os.Stat(d.socket); !errors.Is(err, os.ErrNotExist) {
		d.t.Errorf("the socket is left: %v", err)
	}
}

// try runs a verb and returns all that it printed and its exit code.
func (d *daemon) try(args ...string) (string, int) {
	d.t.Helper()
	var out bytes.Buffer
	c := exec.Command(d.Path, append([]string{"--socket", d.socket}, args...)...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return out.String(), c.ProcessState.ExitCode()
}

// do runs a verb that must succeed.
func (d *daemon) do(args ...string) string {
	d.t.Helper()
	out, code := d.try(args...)
	if code != 0 {
		d.t.Fatalf("%s %s: exit code %d\n%s", filepath.Base(d.Path), strings.Join(args, " "), code, out)
	}
	return out
}

// show reads what "show ... --json" prints.
func show[M proto.Message](d *daemon, m M, args ...string) M {
	d.t.Helper()
	out := d.do(append(append([]string{"show"}, args...), "--json")...)
	if err := protojson.Unmarshal([]byte(out), m); err != nil {
		d.t.Fatalf("show %v: %v in\n%s", args, err, out)
	}
	return m
}

// ports by "switch/name", and by name if there is one switch.
func (d *daemon) ports() map[string]*api.Port {
	d.t.Helper()
	m := map[string]*api.Port{}
	for _, p := range show(d, &api.Ports{}, "ports").Ports {
		m[p.Name], m[p.Switch+"/"+p.Name] = p, p
	}
	return m
}

// drops adds up the drops of all ports by reason.
func (d *daemon) drops() map[string]uint64 {
	d.t.Helper()
	m := map[string]uint64{}
	for _, e := range show(d, &api.Drops{}, "drops").Drops {
		m[e.Reason] += e.Frames
	}
	return m
}

// losses are the drops that are losses.
func (d *daemon) losses() map[string]uint64 {
	d.t.Helper()
	m := map[string]uint64{}
	for _, e := range show(d, &api.Drops{}, "drops").Drops {
		if e.Loss {
			m[e.Reason] += e.Frames
		}
	}
	return m
}

func (d *daemon) generation() uint64 {
	d.t.Helper()
	return show(d, &api.Version{}, "version").Generation
}

// awaitState waits until the state of a port begins so.
func (d *daemon) awaitState(port, state string) {
	d.t.Helper()
	eventually(d.t, "port "+port+" "+state, func() error {
		if got := d.ports()[port].GetState(); !strings.HasPrefix(got, state) {
			return fmt.Errorf("state is %q", got)
		}
		return nil
	})
}

// dump is a running "gswitch capture" to a file.
type dump struct {
	*exec.Cmd
	t    testing.TB
	file string
	log  syncBuffer
}

// capture starts a capture and returns when it has begun.
func (d *daemon) capture(args ...string) *dump {
	d.t.Helper()
	c := &dump{t: d.t, file: filepath.Join(d.t.TempDir(), "capture.pcapng")}
	c.Cmd = exec.Command(gswitch, append([]string{"--socket", d.socket, "capture", "-w", c.file}, args...)...)
	c.Stderr = &c.log
	if err := c.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	eventually(d.t, "the capture begins", func() error {
		if size(c.file) == 0 {
			return fmt.Errorf("%s is empty; log: %s", c.file, c.log.String())
		}
		return nil
	})
	return c
}

// end ends the capture as Ctrl-C does.
func (c *dump) end() {
	c.t.Helper()
	c.Process.Signal(unix.SIGINT)
	if err := c.Wait(); err != nil {
		c.t.Errorf("capture: %v\n%s", err, c.log.String())
	}
}

func size(file string) int64 {
	st, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return st.Size()
}
