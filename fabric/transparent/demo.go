// Package transparent shows what a bump in the wire does for programs that know
// nothing of it: the same fabric of kernel hosts under the same TCP load, once
// as it is and once with every host behind a ghost, and both in one table.
package transparent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/fabric"
	"gswitch/fabric/lab"
	"gswitch/units"
)

// Options of a demo.
type Options struct {
	Gswitch    string     // the gswitch to run
	Ghost      string     // the ghost to run
	Self       string     // the gfabric to run in hosts, for its load tests
	Name       string     // of the fabric
	Rate       units.Rate // of all links
	BaseRTT    time.Duration
	Congestion string
	Options    map[string]string // of congestion control
	Duration   time.Duration     // of each load
	Log        lab.Progress
}

// Defaults: two cores, which also run the hosts' TCP, keep up with these.
const (
	DefaultRate     = units.Rate(40e6)
	DefaultBaseRTT  = 10 * time.Millisecond
	DefaultDuration = 10 * time.Second
	topology        = "leaf-spine(spines=2, leaves=4, hosts=2)"
)

// demo is one of the two runs.
type demo struct {
	Options
	ghosts bool
	layout *lab.Layout
	client api.ControlClient
	socket string // of ghost
}

// Run measures both. Whatever was raised is removed.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Options: o}
	for i, ghosts := range []bool{false, true} {
		d := &demo{Options: o, ghosts: ghosts}
		if err := d.run(ctx, &r.Runs[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (d *demo) run(ctx context.Context, r *Result) (err error) {
	if err := d.plan(); err != nil {
		return err
	}
	if err := lab.Up(ctx, d.layout, d.Gswitch, d.Log); err != nil {
		return err
	}
	defer func() {
		_, downErr := lab.Down(d.Name, d.Log)
		err = errors.Join(err, downErr)
	}()
	st, err := lab.Inspect(d.Name)
	if err != nil {
		return err
	}
	for _, p := range st.Processes {
		first(p.PID)
	}
	d.client = control.Dial(d.layout.Processes[0].Socket)
	if d.ghosts {
		stop, err := d.startGhosts(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	if err := d.measure(ctx, r); err != nil {
		return err
	}
	return ctx.Err()
}

// plan lays the fabric out: all links are alike, so that queues are where
// several senders share a link.
func (d *demo) plan() error {
	t, err := fabric.Spec{Name: d.Name, Generate: topology, Mode: string(fabric.L3),
		Classes: map[string]fabric.Class{fabric.ClassHost: {Rate: d.Rate}, fabric.ClassFabric: {Rate: d.Rate}}}.Build()
	if err != nil {
		return err
	}
	plan, err := fabric.NewPlan(t)
	if err != nil {
		return err
	}
	// How late a worker may be without taking capacity from the links: what
	// congestion control with this T does not notice.
	burst := units.Duration(d.BaseRTT / 4)
	d.layout, err = lab.NewLayout(plan, lab.Options{Poll: "sleep", Owned: true,
		Adjust: func(_ int, sw *config.Switch) {
			sw.Telemetry.INT, sw.Telemetry.Links = true, []units.Rate{d.Rate}
			for i := range sw.Ports {
				sw.Ports[i].Burst = &burst
			}
		}})
	return err
}

// startGhosts puts every host behind a bump. One ghost drives all of them.
func (d *demo) startGhosts(ctx context.Context) (stop func(), err error) {
	dir, err := os.MkdirTemp("", "gfabric-transparent-")
	if err != nil {
		return nil, err
	}
	d.socket = filepath.Join(dir, "ghost.sock")
	var doc strings.Builder
	fmt.Fprintf(&doc, "version: 1\nworkers: [{poll: sleep}]\ncontrol: {socket: %s}\ntransparent:\n", d.socket)
	for _, n := range d.layout.Namespaces {
		if n.Node < 0 || d.layout.Plan.Topology.Nodes[n.Node].Kind != fabric.Host {
			continue
		}
		name := d.layout.Plan.Topology.Nodes[n.Node].Name
		if err := insert(n.Name); err != nil {
			return nil, errors.Join(fmt.Errorf("host %s: %w", name, err), os.RemoveAll(dir))
		}
		fmt.Fprintf(&doc, "- {name: %s, inner: %s, outer: %s, netns: %s, rate: %s, base_rtt: %v, congestion: %s, telemetry: {links: [%s]}%s}\n",
			name, innerName, outerName, n.Name, d.Rate, d.BaseRTT, d.Congestion, d.Rate, options(d.Options.Options))
	}
	file := filepath.Join(dir, "transparent.yaml")
	if err := os.WriteFile(file, []byte(doc.String()), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	log := filepath.Join(dir, "ghost.log")
	errs, err := os.Create(log)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer errs.Close()
	c := exec.CommandContext(ctx, d.Ghost, "run", "-c", file)
	c.Stderr = errs
	ready, ended, err := startLine(c)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() {
		_ = c.Process.Signal(syscall.SIGTERM) // one that has ended needs none
		<-ended
		_ = os.RemoveAll(dir)
	}
	if !strings.Contains(ready, "ready") {
		text, _ := os.ReadFile(log)
		stop()
		return nil, fmt.Errorf("ghost ended at its start: %s", text)
	}
	first(c.Process.Pid)
	d.Log("ghost is in the wire of %d hosts", len(d.layout.Plan.Topology.Hosts()))
	return stop, nil
}

// options writes options of congestion control as a part of a document.
func options(o map[string]string) string {
	if len(o) == 0 {
		return ""
	}
	parts := make([]string, 0, len(o))
	for k, v := range o {
		parts = append(parts, fmt.Sprintf("%s: %q", k, v))
	}
	return ", congestion_options: {" + strings.Join(parts, ", ") + "}"
}

// first lets a process count more than others on its processors: what it
// emulates should wait for links, not for processors. Where that is not allowed
// it does without. Never a real-time policy: with that, workers that do not
// keep up would stop the machine.
func first(pid int) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return
	}
	for _, t := range tasks {
		var tid int
		if _, err := fmt.Sscan(t.Name(), &tid); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, -10)
		}
	}
}
