// Package measure turns what happens in a network into the values, the
// distributions and the series of results.Run.
//
// Every scalar has a documented key, see Keys. A key of a group, a range of
// sizes, a window or an event of the scenario stands behind its name and a dot:
// mice.slowdown_p99, later.queue_max_bytes, burst.drain_seconds.
package measure

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gswitch/fabric/results"
	"gswitch/feature"
	"gswitch/hostnic"
	"gswitch/vswitch"
)

// Scope says what a key is known of.
type Scope uint8

// Scopes.
const (
	OfRun    Scope = 1 << iota // the whole run
	OfGroup                    // each group of flows
	OfSizes                    // each range of flow sizes
	OfWindow                   // each window
	OfEvent                    // each event
)

// Key is the name of a scalar.
type Key struct {
	Name  string
	Of    Scope
	Quant bool // stands for _mean, _p50, _p95, _p99, _p99.9 and _max, before the unit
	Unit  string
	Doc   string
}

// registered are the keys of what is measured for a system, by its name.
var registered = map[string][]Key{}

// Register adds the keys of what runs measure for a system.
func Register(system string, keys []Key) { registered[system] = keys }

// Keys returns every scalar that a run can have: those of every run, those that are
// measured for a system, and what the features of switches and hosts count.
func Keys() []Key {
	all := slices.Clone(keys)
	for _, system := range slices.Sorted(maps.Keys(registered)) {
		all = append(all, registered[system]...)
	}
	add := func(counters []feature.Counter, together, largest, key string) {
		for i := range counters {
			c, of := &counters[i], together
			if c.Gauge {
				of = largest
			}
			for _, name := range c.Keys() {
				all = append(all, Key{Name: name, Of: OfRun, Doc: c.Help + " " + of + ", with " + key + "."})
			}
			if c.Was != "" {
				all = append(all, Key{Name: c.Was, Of: OfRun, Doc: "Use " + c.Name + ": this name is removed in the next version."})
			}
		}
	}
	for _, f := range vswitch.Features() {
		add(f.Counters, "Of all switches together", "The largest of any port", section("switch.", f.Name, (f.Section != nil || f.Whole != nil) && !f.Daemons))
	}
	for _, f := range hostnic.Features() {
		add(f.Counters, "Of all hosts together", "The largest of any host", section("hosts.", f.Name, f.Section != nil && !f.Daemons))
	}
	return all
}

// section is where documents turn a feature on: among those of its kind of nodes,
// or at the top if it is of all nodes together.
func section(place, name string, own bool) string {
	if own {
		return place + name
	}
	return name
}

var keys = []Key{
	{"flows_total", OfRun | OfGroup | OfSizes, false, "", "Flows that started after the warm-up. Connections of kind saturate do not count as flows."},
	{"flows_unfinished_total", OfRun | OfGroup | OfSizes, false, "", "Flows that were not complete at the end."},
	{"timeout_share", OfRun | OfGroup | OfSizes, false, "", "Share of flows with a retransmission timeout, of any of their messages; those that are not complete count by the messages that are."},
	{"fct", OfRun | OfGroup | OfSizes, true, "seconds", "Completion times of flows."},
	{"fct_bytes_mean_seconds", OfRun | OfGroup | OfSizes, false, "", "Mean completion time over bytes: that of each flow counts by its size."},
	{"flow_rate_mean_bps", OfRun | OfGroup | OfSizes, false, "", "Mean over flows of the bytes of each, divided by its completion time."},
	{"flow_rate_deviation_bps", OfRun | OfGroup | OfSizes, false, "", "Standard deviation of these rates."},
	{"slowdown", OfRun | OfGroup | OfSizes, true, "", "Completion times, each divided by that of the flow alone in the network."},
	{"rtt", OfRun | OfGroup, true, "seconds", "Network round-trip times: of messages that fit one frame, from posting to acknowledgement."},
	{"single_slowdown", OfRun | OfGroup, true, "", "Slowdowns of messages that fit one frame."},
	{"completion", OfGroup, true, "seconds", "From the first start to the last completion of flows that belong together: an incast, a round, a request with its answer, a query with its answers."},
	{"retransmissions_total", OfRun | OfGroup, false, "", "Data frames that were sent again."},
	{"goodput_bps", OfRun | OfGroup | OfWindow, false, "", "Payload delivered in order per second, of all hosts together, after the warm-up or in the window."},
	{"goodput_min_bps", OfRun | OfGroup | OfWindow, false, "", "Least goodput of any bin."},
	{"jain_index", OfRun | OfGroup | OfWindow, false, "", "Fairness index of Jain over the goodputs of the connections that are open in a bin, mean of the bins with two or more."},
	{"queue", OfRun | OfWindow, true, "bytes", "Depths of the egress queues that are measured, weighted by time."},
	{"queue_busy_share", OfRun | OfWindow, false, "", "Share of the time that these queues are not empty."},
	{"utilisation_share", OfRun | OfWindow, false, "", "Share of their rate that the links that are measured carry, headers and overhead included."},
	{"link_bps", OfRun | OfWindow, false, "", "What the first of these links carries per second."},
	{"link_min_bps", OfRun | OfWindow, false, "", "Least of any bin."},
	{"link_low_seconds", OfRun | OfWindow, false, "", "Total length of the bins in which it carries less than measure.low."},
	{"ack_rtt", OfRun | OfGroup | OfWindow, true, "seconds", "Round-trip times of data frames, from their start on the first link, or of segments where the NIC paces those (hosts.segment), from the instant at which their pace lets them go, waiting in the NIC included: up to the acknowledgement, without the time that the frame or segment itself takes on the first link. Known with measure.rtt."},
	{"drops_total", OfRun, false, "", "Frames that switches or hosts dropped, for whatever reason, faults of links and late frames not counted."},
	{"late_frames_total", OfRun, false, "", "Frames that reached a host after their connection was closed: repeated data and acknowledgements that nobody needs."},
	{"arena_exhausted_total", OfRun, false, "", "Of the frames dropped, those for which the program had no memory set aside. No real network would have lost them: a run with any is not to be trusted."},
	{"drop_share", OfRun, false, "", "The same as a share of the data frames that hosts sent."},
	{"faults_total", OfRun, false, "", "Frames that links lost or spoiled as the scenario's faults say, and those that waited for a link when it failed."},
	{"marks_total", OfRun, false, "", "Data frames that arrived with a congestion mark."},
	{"pauses_total", OfRun, false, "", "Times that a class of a port was paused."},
	{"pause_frames_total", OfRun, false, "", "Pause frames that switches sent, renewals included."},
	{"pause_seconds", OfRun, false, "", "Time that switches paused their neighbours, of all ports and classes together."},
	{"pause_share", OfRun, false, "", "The same as a share of the time of all switch ports."},
	{"deadlocks_total", OfRun, false, "", "Circles of egress queues that wait for each other at the end, and have sent nothing for 500 us."},
	{"paths_tier1_share", OfRun, false, "", "Share of the adaptive choices that found a port below the first threshold (switch.paths). So for tier2, tier3 and tier4: below that one and no earlier one."},
	{"paths_tier2_share", OfRun, false, "", "The same for the second threshold."},
	{"paths_tier3_share", OfRun, false, "", "For the third."},
	{"paths_tier4_share", OfRun, false, "", "For the fourth."},
	{"paths_any_share", OfRun, false, "", "Share of these choices that found no port below any threshold."},
	{"paths_choices_total", OfRun, false, "", "Adaptive choices, by all switches together."},
	{"flowlets_total", OfRun, false, "", "Flowlets that began at any switch."},
	{"host_pause_share", OfRun, false, "", "Share of the time of the hosts' ports that they were paused."},
	{"timeouts_total", OfRun, false, "", "Retransmission timeouts."},
	{"broken_connections_total", OfRun, false, "", "Connections of TCP that were given up after too many timeouts, with TCP."},
	{"inversions_total", OfRun, false, "", "Frames that left an egress queue while one of smaller rank waited there, with switch.inversions."},
	{"quenches_total", OfRun, false, "", "Times that a class of a host was paused for longer than hosts.quench_after."},
	{"notices_total", OfRun, false, "", "Notices of congestion points that hosts followed or ignored by their rules."},
	{"telemetry_unstamped_total", OfRun, false, "", "Records that switches could not write into frames with telemetry: there was no room, or no more was allowed (switch.int.mode)."},
	{"data_frames_total", OfRun, false, "", "Data frames that hosts sent, without those of second loops."},
	{"at_seconds", OfEvent, false, "", "When the event was."},
	{"drain_seconds", OfEvent, false, "", "Time from the event until the queue, after its peak, is down. Until the end of the run if it never is; drained is 0 then."},
	{"drained", OfEvent, false, "", "1 if the queue came down."},
	{"peak_bytes", OfEvent, false, "", "Largest depth of the queue after the event."},
	{"crossings", OfEvent, false, "", "How often the queue rose above the mark after the event."},
	{"recovery_seconds", OfEvent, false, "", "Time from the event until the group has its goodput back for good: the end of the last bin that falls short. The whole rest of the run if it never has; recovered is 0 then."},
	{"reach_seconds", OfEvent, false, "", "Time from the event until the group's goodput is what reaches says: the end of the first such bin. The whole rest of the run if it never is; reached is 0 then."},
	{"reached", OfEvent, false, "", "1 if it was."},
	{"recovered", OfEvent, false, "", "1 if it has it back."},
}

// Names returns the names that k stands for.
func (k *Key) Names() []string {
	unit := ""
	if k.Unit != "" {
		unit = "_" + k.Unit
	}
	if !k.Quant {
		return []string{k.Name + unit}
	}
	v := []string{k.Name + "_mean" + unit}
	for _, p := range results.Percentiles {
		v = append(v, k.Name+"_"+results.Percentile(p)+unit)
	}
	return append(v, k.Name+"_max"+unit)
}

// Known lists the keys that a run can have, with those of its groups, ranges of
// sizes, windows and events.
func Known(groups, sizes, windows, events []string) []string {
	var v []string
	all := Keys()
	for i := range all {
		k := &all[i]
		for _, n := range k.Names() {
			if k.Of&OfRun != 0 {
				v = append(v, n)
			}
			for _, scope := range []struct {
				of    Scope
				names []string
			}{{OfGroup, groups}, {OfSizes, sizes}, {OfWindow, windows}, {OfEvent, events}} {
				if k.Of&scope.of == 0 {
					continue
				}
				for _, s := range scope.names {
					v = append(v, s+"."+n)
				}
			}
		}
	}
	slices.Sort(v)
	return v
}

// WriteKeys writes the table of keys.
func WriteKeys(w io.Writer) error {
	all := Keys()
	for i := range all {
		k := &all[i]
		var of []string
		for bit, name := range []string{"run", "group", "range of sizes", "window", "event"} {
			if k.Of>>bit&1 != 0 {
				of = append(of, name)
			}
		}
		names := k.Names()
		name := names[0]
		if k.Quant {
			name = strings.Replace(name, "_mean", "_{mean,p50,p95,p99,p99.9,max}", 1)
		}
		if _, err := fmt.Fprintf(w, "%s\n    of %s. %s\n", name, strings.Join(of, ", "), k.Doc); err != nil {
			return err
		}
	}
	return nil
}
