package run

import (
	"fmt"
	"strings"

	"gswitch/fabric/observe"
	"gswitch/fabric/pauses"
	"gswitch/fabric/results"
	"gswitch/fabric/vnet"
	"gswitch/fault"
	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/vswitch"
)

// counters adds the counters of nodes and links over the whole run.
func counters(n *vnet.Network, out *results.Run) {
	c := count(n)
	c.put(n, n.Engine.Now(), n.Engine.Stats().Lost, out)
	deadlocks(n, n.Waits(n.Engine.Now()), n.Engine.Now(), out)
}

// deadlocks counts the cycles among the queues that wait at now.
func deadlocks(n *vnet.Network, waits []pauses.Wait, now frame.Time, out *results.Run) {
	k := 0
	for _, d := range n.Circles(waits) {
		if now-d.Since >= deadlocked {
			k++
		}
	}
	out.Values["deadlocks_total"] = float64(k)
}

// tally holds the counters of nodes over the whole run.
type tally struct {
	Drops    [frame.NumReasons]uint64
	Late     uint64
	Data     uint64
	Timeouts uint64
	Marks    uint64
	Broken   uint64 // TCP connections that were given up
	Quenches uint64
	Notices  uint64     // from switches, processed by hosts
	Paused   frame.Time // total of hosts
	Pauses   vnet.Pauses
	Paths    vswitch.PathCounts
	Features map[string]float64 // by the keys of the features' counters
	// Inversions is the number of frames that left a queue while one of smaller rank
	// waited.
	Inversions uint64
	Systems    map[string]float64 // sums of what systems count, by their names in results
	// Telemetry counts frames by the outcome of a switch's record.
	Telemetry [inband.NumOutcomes]uint64
}

// count reads all nodes. Nodes that were not stepped here have counted nothing.
func count(n *vnet.Network) (c tally) {
	now := n.Engine.Now()
	c.Late, c.Drops, c.Pauses = n.Late(), n.Drops(), n.Pauses(now)
	c.Paths, _ = n.PathCounts()
	c.Features = n.Counted()
	c.Telemetry = n.Telemetry()
	c.Inversions = n.Inversions()
	for _, s := range n.Stacks() {
		k := s.Counts()
		c.Data += k.Segments
		c.Timeouts += k.Stats.Timeouts
		c.Marks += k.Stats.Marked
		c.Broken += k.Failed
	}
	c.Systems = observe.Counted(n)
	for _, h := range n.Hosts {
		k := h.Counts()
		c.Data += k.DataFrames
		c.Timeouts += k.Timeouts
		c.Marks += k.CEMarked
		c.Quenches += k.Quenches
		c.Notices += k.Notices
		for _, t := range h.Flow(now).PausedTime {
			c.Paused += t
		}
	}
	return c
}

// deadlocked is how long queues must wait for each other for a run to count them as a
// deadlock: many times as long as a pause that ends.
const deadlocked = 500 * frame.Microsecond

// add adds the counters of another process's nodes.
func (c *tally) add(o *tally) {
	for i, k := range o.Drops {
		c.Drops[i] += k
	}
	c.Late += o.Late
	c.Data += o.Data
	c.Timeouts += o.Timeouts
	c.Marks += o.Marks
	c.Quenches += o.Quenches
	c.Notices += o.Notices
	c.Paused += o.Paused
	c.Pauses.Requests += o.Pauses.Requests
	c.Pauses.XOFF += o.Pauses.XOFF
	c.Pauses.XON += o.Pauses.XON
	c.Pauses.Time += o.Pauses.Time
	c.Paths.Plus(&o.Paths)
	if c.Features == nil {
		c.Features = map[string]float64{}
	}
	vnet.AddCounted(c.Features, o.Features)
	c.Inversions += o.Inversions
	if c.Systems == nil {
		c.Systems = map[string]float64{}
	}
	for name, v := range o.Systems {
		c.Systems[name] += v
	}
	for i, k := range o.Telemetry {
		c.Telemetry[i] += k
	}
}

// put writes the tally to the results of a run that ended at now, with the losses of
// links.
func (c *tally) put(n *vnet.Network, now frame.Time, links [fault.NumLosses]uint64, out *results.Run) {
	put := func(name string, v float64) { out.Values[name] = v }
	lost := uint64(0)
	put("late_frames_total", float64(c.Late))
	put("arena_exhausted_total", float64(c.Drops[frame.ArenaExhausted]))
	for reason, k := range c.Drops {
		if k > 0 {
			put("drops_"+strings.ReplaceAll(frame.Reason(reason).String(), "-", "_"), float64(k))
			lost += k
		}
	}
	lost -= c.Drops[frame.QueueFlush] // by a fault
	put("drops_total", float64(lost))
	judgeLossless(n, c.Drops[frame.HeadroomFull], out)
	put("data_frames_total", float64(c.Data))
	put("timeouts_total", float64(c.Timeouts))
	put("marks_total", float64(c.Marks))
	put("quenches_total", float64(c.Quenches))
	put("notices_total", float64(c.Notices))
	if n.Stacks() != nil {
		put("broken_connections_total", float64(c.Broken))
	}
	if c.Data > 0 {
		put("drop_share", float64(lost)/float64(c.Data))
	}
	put("pauses_total", float64(c.Pauses.Requests))
	put("pause_frames_total", float64(c.Pauses.XOFF))
	put("pause_seconds", c.Pauses.Time.Seconds())
	for key, v := range c.Features {
		put(key, v)
	}
	_, by := n.PathCounts()
	paths(&c.Paths, &by, put)
	if n.CountsInversions() {
		put("inversions_total", float64(c.Inversions))
	}
	for name, v := range c.Systems {
		put(name, v)
	}
	c.unstamped(n, out)
	ports := 0
	for s := range n.Switches {
		ports += n.Ports(s)
	}
	put("pause_share", c.Pauses.Time.Seconds()/(float64(ports)*now.Seconds()))
	put("host_pause_share", c.Paused.Seconds()/(float64(len(n.Hosts))*now.Seconds()))
	spoiled := c.Drops[frame.QueueFlush]
	for _, k := range links {
		spoiled += k
	}
	put("faults_total", float64(spoiled))
}

// unstamped reports records that switches could not write: congestion control did not see
// those queues.
func (c *tally) unstamped(n *vnet.Network, out *results.Run) {
	all, missing, why := uint64(0), uint64(0), ""
	for i, k := range c.Telemetry {
		all += k
		if o := inband.Outcome(i); o != inband.Ready && k > 0 {
			missing += k
			why += fmt.Sprintf(", %s %d", o, k)
		}
	}
	if all == 0 {
		return
	}
	out.Values["telemetry_unstamped_total"] = float64(missing)
	if missing > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("telemetry: %d of %d records of switches were not written (%s): what needs telemetry did not see those queues; switch.int.mode: %s",
			missing, all, why[2:], inband.Rooms(n.INT(), n.Topology.LongestPath())))
	}
}

// judgeLossless marks a run on real frames invalid if frames of lossless classes found no
// headroom, unless the scenario accepts that: the engine was later than the headroom
// allows for.
func judgeLossless(n *vnet.Network, lost uint64, out *results.Run) {
	t := out.Timing
	if t == nil || lost == 0 || n.AcceptsLoss() {
		return
	}
	t.Valid = false
	t.Why = append(t.Why, fmt.Sprintf("%d frames of lossless classes were dropped, since pauses acted later than the headroom allows for", lost))
	t.Remedies = append(t.Remedies, "a larger scale, or more headroom (switch.buffer.headroom)")
}
