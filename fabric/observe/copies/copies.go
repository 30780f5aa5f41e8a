// Package copies has hosts collect the copies that switches send of packets
// (measure.traces), and says what became of those.
package copies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gswitch/capture"
	"gswitch/fabric"
	"gswitch/fabric/measure"
	"gswitch/fabric/observe"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/traces"
	"gswitch/fabric/view"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/wholefile"
)

// mostCopies is how many copies the file of a run has at most.
const mostCopies = 1 << 18

// copies are what switches sent to the hosts that collect them (measure.traces).
type copies struct {
	book *traces.Book
	keep bool // for a file
	kept []kept
	more uint64 // that are not kept

	probes probes // that are sent for it

	n     *vnet.Network
	hosts map[string]int // nodes, by address
}

type kept struct {
	at   frame.Time
	data []byte
}

func init() {
	observe.Register(&observe.System{
		Name:    "traces",
		On:      func(d *scenario.Document) bool { return len(d.Measure.Traces) > 0 },
		Divided: "measure.traces collects copies, which come to the hosts' processes: run it with --processes one, or without measure.traces",
		Values:  values,
		New: func(_ context.Context, r *observe.Run) (*observe.Observer, error) {
			plan, err := fabric.NewPlan(r.Topology)
			if err != nil {
				return nil, err
			}
			c := &copies{book: traces.New(plan), keep: r.Dir != ""}
			return &observe.Observer{
				Network: func(v *vnet.Config) {
					v.Listen = map[string]func(frame.Time, []byte) bool{}
					for _, h := range r.Doc.Measure.Traces {
						v.Listen[h] = c.take
					}
				},
				Begin: func(n *vnet.Network, _ *measure.Recorder) (err error) {
					c.n = n
					c.probes, err = probe(n, r.Run)
					return err
				},
				Ways: func(v []view.Way) []view.Way { return c.ways(v) },
				Finish: func(n *vnet.Network, out *results.Run) error {
					c.put(n.Engine.Now(), out)
					c.probes.put(c.book, out)
					if !c.keep {
						return nil
					}
					return c.save(r.Dir, r.Run)
				},
			}, nil
		},
	})
}

// ways appends those of the packets of which copies came last.
func (c *copies) ways(v []view.Way) []view.Way {
	if c.hosts == nil {
		c.hosts = map[string]int{}
		for _, h := range c.n.Topology.Hosts() {
			c.hosts[c.n.Plan.Nodes[h].Address[0].Addr().String()] = h
		}
	}
	for _, x := range c.book.Newest(c.n.Engine.Now(), view.MaxWays) {
		w := view.Way{Flow: x.Flow, ID: x.ID, Kind: string(x.Kind), First: x.First.Seconds(), Took: x.Delay.Seconds(), Reason: x.Reason}
		if h, known := c.hosts[x.Src]; known {
			w.Nodes = append(w.Nodes, h)
		}
		for _, name := range x.Path {
			if node, known := c.n.Topology.Lookup(name); known {
				w.Nodes = append(w.Nodes, node)
			}
		}
		if h, known := c.hosts[x.Dst]; known && x.Kind == traces.Delivered {
			w.Nodes = append(w.Nodes, h)
		}
		v = append(v, w)
	}
	return v
}

// take takes a copy.
func (c *copies) take(now frame.Time, b []byte) bool {
	if !c.book.Add(now, b) {
		return false
	}
	switch {
	case !c.keep:
	case len(c.kept) == mostCopies:
		c.more++
	default:
		c.kept = append(c.kept, kept{now, append([]byte(nil), b...)})
	}
	return true
}

// put writes what became of the packets to the results of a run that ended at now.
func (c *copies) put(now frame.Time, out *results.Run) {
	c.book.Finish(now)
	for _, k := range traces.Kinds {
		out.Values["traces_"+string(k)+"_total"] = 0
	}
	missing := 0
	for _, v := range c.book.Verdicts() {
		out.Values["traces_"+string(v.Kind)+"_total"]++
		missing += v.Missing
	}
	out.Values["traces_total"] = float64(len(c.book.Done))
	out.Values["traces_missing_copies_total"] = float64(missing)
	out.Values["copies_collected_total"] = float64(c.book.Copies)
	for _, s := range c.book.Suspects() {
		out.Values[traces.EndKey(s.Name)] += s.Traces
	}
	for i, s := range c.book.Circles() {
		if i == 0 {
			out.Values["loop_visits_mean"] = s.Visits
		}
		for _, name := range s.Switches {
			out.Values[traces.LoopKey(name)] += float64(s.Traces)
		}
	}
	for _, s := range c.book.Shares() {
		out.Values["uneven_max"] = max(out.Values["uneven_max"], s.Ratio)
	}
	for i, l := range c.book.Links() {
		if i < mostHops {
			out.Values[traces.HopKey(l.From, l.To)] = l.Max.Seconds()
			out.Values[traces.HopPacketsKey(l.From, l.To)] = float64(l.Packets)
		}
	}
	for _, p := range c.book.Pausers() {
		out.Values[traces.PauseKey(p.Who)] += float64(p.Pauses)
	}
	if c.more > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("traces: %d copies beyond the first %d are not in the file of copies", c.more, mostCopies))
	}
}

// mostHops is how many links, those with the most waiting, have a value.
const mostHops = 128

// save writes the copies to a file below the directory of the results, and the
// network that they are of beside it.
func (c *copies) save(dir string, r *scenario.Run) error {
	dir = filepath.Join(dir, traces.Dir)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	name := strings.NewReplacer("/", "_", " ", "_", ",", "_").Replace(fmt.Sprintf("%s-%d", r.Name, r.Seed))
	network, err := json.Marshal(r.Topology)
	if err != nil {
		return err
	}
	if err := wholefile.WriteBytes(filepath.Join(dir, name+".json"), 0o666, append(network, '\n')); err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(dir, name+".pcapng"), 0o666, func(out io.Writer) error {
		w := capture.NewWriter(out)
		err := w.Section("copies of " + r.Name)
		if err == nil {
			_, err = w.Interface("copies", "", 0)
		}
		for i := range c.kept {
			if err == nil {
				k := &c.kept[i]
				err = w.Packet(capture.Record{Time: int64(k.at), Wire: uint32(len(k.data))}, k.data)
			}
		}
		return errors.Join(err, w.Flush())
	})
}
