package lab

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/fabric"
)

// runDir holds one folder for each fabric.
const runDir = "/run/gfabric"

// Phases of a fabric's life.
const (
	phaseCreating = "creating"
	phaseUp       = "up"
	phaseRemoving = "removing"
)

// state is what is known of a fabric beyond the process that made it. It is
// written before anything else of the fabric is.
type state struct {
	Version    int              `json:"version"`
	Name       string           `json:"name"`
	Token      string           `json:"token"`
	Phase      string           `json:"phase"`
	Created    time.Time        `json:"created"`
	Maker      procID           `json:"maker"`
	Owned      bool             `json:"owned,omitempty"` // it is to live no longer than its maker
	Topology   *fabric.Topology `json:"topology"`
	Namespaces []Namespace      `json:"namespaces"`
	Veths      []Veth           `json:"veths"`
	Processes  []procState      `json:"processes"`
}

type procState struct {
	Name      string   `json:"name"`
	Switches  []string `json:"switches"`
	Namespace string   `json:"namespace"` // empty: that of gfabric
	Config    string   `json:"config"`
	Log       string   `json:"log"`
	Socket    string   `json:"socket"`
	Listen    string   `json:"listen,omitempty"`
	Proc      procID   `json:"proc"`

	run []string // further flags
}

// procID names a process for good: numbers are used again, start times with
// them are not.
type procID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot, field 22 of proc_pid_stat(5)
}

func newState(l *Layout) *state {
	t := l.Plan.Topology
	s := &state{
		Version: 1, Name: t.Name, Token: strings.ToLower(rand.Text()), Phase: phaseCreating, Created: time.Now().UTC(), Maker: self(), Owned: l.owned,
		Topology: t, Namespaces: l.Namespaces, Veths: l.Veths,
	}
	for _, p := range l.Processes {
		ps := procState{Name: p.Name, Config: p.File, Log: p.Log, Socket: p.Socket, Listen: p.Config.Control.Listen, run: p.run}
		if p.Namespace >= 0 {
			ps.Namespace = l.Namespaces[p.Namespace].Name
		}
		for _, n := range p.Switches {
			ps.Switches = append(ps.Switches, t.Nodes[n].Name)
		}
		s.Processes = append(s.Processes, ps)
	}
	return s
}

// marker is the word that everything of the fabric bears.
func (s *state) marker() string { return "gfabric:" + s.Name + ":" + s.Token }

func (s *state) dir() string { return filepath.Join(runDir, s.Name) }

// save replaces the state on disk in one step.
func (s *state) save() error {
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(s.dir(), ".state.json")
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot note the state of the fabric: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(s.dir(), "state.json")); err != nil {
		return fmt.Errorf("cannot note the state of the fabric: %w", err)
	}
	return nil
}

// readState returns the state of a fabric, or nil if there is none.
func readState(name string) (*state, error) {
	path := filepath.Join(runDir, name, "state.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the state of fabric %q: %w", name, err)
	}
	s, err := decodeState(name, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func decodeState(name string, data []byte) (*state, error) {
	s := new(state)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("not a state of gfabric: %w", err)
	}
	switch {
	case s.Version != 1:
		return nil, fmt.Errorf("version %d is of another gfabric; use that one", s.Version)
	case s.Name != name || s.Token == "" || s.Topology == nil:
		return nil, fmt.Errorf("not the state of fabric %q", name)
	}
	if err := s.Topology.CheckIndices(); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	for _, n := range s.Namespaces {
		// Names are parts of paths here.
		if !strings.HasPrefix(n.Name, namespaceName(name, "")) || strings.ContainsRune(n.Name, '/') || n.Node < -1 || n.Node >= len(s.Topology.Nodes) {
			return nil, fmt.Errorf("damaged: namespace %q of node %d", n.Name, n.Node)
		}
	}
	for _, v := range s.Veths {
		for _, d := range []Dev{v.A, v.B} {
			if v.Link < 0 || v.Link >= len(s.Topology.Links) || d.Namespace < 0 || d.Namespace >= len(s.Namespaces) || d.Node < 0 || d.Node >= len(s.Topology.Nodes) {
				return nil, fmt.Errorf("damaged: interface %q", d.Name)
			}
		}
	}
	return s, nil
}

// names returns the fabrics that have a folder, in order.
func names() ([]string, error) {
	entries, err := os.ReadDir(runDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var v []string
	for _, e := range entries {
		if e.IsDir() {
			v = append(v, e.Name())
		}
	}
	slices.Sort(v)
	return v, nil
}

// makeDir makes the folder of a fabric. One that is there must be empty.
func makeDir(name string) error {
	dir := filepath.Join(runDir, name)
	if err := os.Mkdir(dir, 0o755); err == nil || !errors.Is(err, os.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != ".state.json" { // a save that was cut short
			return fmt.Errorf("%s is there already and holds %s, but no state of a fabric; remove it, or choose another name", dir, e.Name())
		}
	}
	return nil
}

// lock is the right to change a fabric. The kernel releases it when its
// holder dies.
type lock struct {
	f    *os.File
	path string
}

// lockPatience is how long a lock that is held is waited for. A gfabric that
// is killed while it starts a process leaves the lock to the child until that
// has become the process, which is then found by its mark: a moment later, or
// a good deal later on a busy machine.
const lockPatience = 3 * time.Second

// unmade says what to do about a lock that cannot be made.
func unmade(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("fabrics need root, for namespaces and AF_XDP sockets: run it with sudo (%w)", err)
	}
	return fmt.Errorf("the lock of the fabric: %w", err)
}

// acquire takes the lock of a fabric, or says that it is taken.
func acquire(name string) (*lock, error) {
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		return nil, unmade(err)
	}
	path := filepath.Join(runDir, name+".lock")
	for end := time.Now().Add(lockPatience); ; {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, unmade(err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if time.Now().Before(end) {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			return nil, fmt.Errorf("fabric %q is being changed by another gfabric; wait for it", name)
		}
		// Whoever held it before may have removed the file meanwhile.
		var mine, there unix.Stat_t
		if unix.Fstat(int(f.Fd()), &mine) == nil && unix.Stat(path, &there) == nil && mine.Ino == there.Ino {
			return &lock{f, path}, nil
		}
		f.Close()
	}
}

// release gives the lock back and removes its file.
func (l *lock) release() {
	os.Remove(l.path)
	l.f.Close()
}
