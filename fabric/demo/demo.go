// Package demo shows a fabric at work: it raises two spines, four leaves and
// eight hosts, reaches every host from every other, loads the network with
// TCP while it shows what every port carries, and says what came of it.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/fabric"
	"gswitch/fabric/lab"
	"gswitch/units"
)

// Options of a demo.
type Options struct {
	Gswitch  string        // the gswitch to run
	Self     string        // the gfabric to run in hosts, for its load tests
	Name     string        // of the fabric
	Rate     units.Rate    // of links between switches; those of hosts carry hostShare times as much
	Duration time.Duration // of the load
	Poll     string
	Out      *os.File // results and, if it is a terminal, the live view
	Log      lab.Progress
}

// The links' rate is chosen so that two cores carry all of it with room to
// spare, the hosts' TCP and the tools in them included: four leaves with two
// links of 50 Mb/s each are 33,000 full frames a second, each through three
// switches, and half as many acknowledgements.
const (
	DefaultRate     = units.Rate(50e6)
	DefaultDuration = 10 * time.Second
	// Links of hosts are faster, so that the queues are those of switches: what
	// waits in a host, no switch can let pass.
	hostShare = 2
	topology  = "leaf-spine(spines=2, leaves=4, hosts=2)"
	// catchUp is how late a worker may be without taking capacity from the
	// links. The switches share their processor with all hosts here.
	catchUp = 2 * time.Millisecond
)

// demo is a run of it.
type demo struct {
	Options
	layout *lab.Layout
	client api.ControlClient
}

// Run runs the demo. The fabric is removed whatever happens.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o}
	if err := d.plan(); err != nil {
		return err
	}
	if err := lab.Up(ctx, d.layout, o.Gswitch, o.Log); err != nil {
		return err
	}
	defer func() {
		if _, downErr := lab.Down(o.Name, o.Log); downErr != nil {
			err = errors.Join(err, downErr)
		}
	}()
	fabric.ASCII(o.Out, d.layout.Plan.Topology)
	d.client = control.Dial(d.layout.Processes[0].Socket)

	defer context.AfterFunc(ctx, func() { o.Log("interrupted; the fabric is being removed") })()

	pings := d.pingAll(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	writePings(o.Out, pings)
	result := d.load(ctx)
	result.Pings = pings
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.counters(ctx, result); err != nil {
		result.Failures = append(result.Failures, fmt.Sprintf("the switches' counters cannot be read: %v", err))
	}
	result.judge()
	result.write(o.Out)
	if len(result.Failures) > 0 {
		return fmt.Errorf("the demo failed: %s", result.Failures[0])
	}
	return nil
}

// plan lays the fabric out. The switches mark ECN where more than some
// milliseconds of data wait, and the hosts' TCP reacts to it, so that queues stay
// short although all links are full. They trust DSCP, so that a marked request
// overtakes what waits; tcp_reflect_tos marks the responses too.
func (d *demo) plan() error {
	t, err := fabric.Spec{
		Name: d.Name, Generate: topology, Mode: string(fabric.L3),
		Classes: map[string]fabric.Class{fabric.ClassHost: {Rate: d.hostRate()}, fabric.ClassFabric: {Rate: d.Rate}},
	}.Build()
	if err != nil {
		return err
	}
	plan, err := fabric.NewPlan(t)
	if err != nil {
		return err
	}
	d.layout, err = lab.NewLayout(plan, lab.Options{
		Poll: d.Poll, Adjust: d.adjust, Owned: true, Sysctls: map[string]string{
			"net.ipv4.tcp_congestion_control": "reno", // every kernel has it, and it reacts to ECN
			"net.ipv4.tcp_ecn":                "1",
			"net.ipv4.tcp_reflect_tos":        "1",
		},
	})
	return err
}

func (d *demo) hostRate() units.Rate { return d.Rate * hostShare }

func (d *demo) adjust(_ int, sw *config.Switch) {
	sw.Buffer.Size = 2 << 20
	burst := units.Duration(catchUp)
	for i := range sw.Ports {
		sw.Ports[i].Trust = "dscp"
		sw.Ports[i].Burst = &burst
	}
	if d.Rate == 0 {
		return // without an emulated rate no queue forms here
	}
	ms := units.Size(d.Rate / 8000) // bytes that a link carries in a millisecond
	sw.QoS = map[string]config.QoS{"ecn": {Queues: []config.Queue{{Queue: 0, ECN: &config.ECN{KMin: 2 * ms, KMax: 8 * ms, PMax: 1}}}}}
	for i := range sw.Ports {
		sw.Ports[i].QoS = "ecn"
	}
}

// hosts returns the names of the hosts, in order.
func (d *demo) hosts() []string {
	var v []string
	for _, h := range d.layout.Plan.Topology.Hosts() {
		v = append(v, d.layout.Plan.Topology.Nodes[h].Name)
	}
	return v
}

// address returns the IPv4 address of a node.
func (d *demo) address(name string) string {
	n, _ := d.layout.Plan.Topology.Lookup(name)
	p := &d.layout.Plan.Nodes[n]
	if len(p.Loopback) > 0 {
		return p.Loopback[0].String()
	}
	return p.Address[0].Addr().String()
}

// heading writes a title over what follows.
func heading(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "\n== "+format+"\n", args...)
}
