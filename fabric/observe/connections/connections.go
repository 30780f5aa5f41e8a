// Package connections records the TCP connections of a run (measure.connections), replays
// them when it is over, and says what went wrong in each (package deter).
package connections

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gswitch/deter"
	"gswitch/fabric/observe"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/tcp/stack"
	"gswitch/wholefile"
)

func init() {
	observe.Register(&observe.System{
		Name:   "connections",
		On:     func(d *scenario.Document) bool { return d.Measure.Connections },
		Values: values,
		New: func(_ context.Context, r *observe.Run) (*observe.Observer, error) {
			k := &book{r: r}
			return &observe.Observer{
				Built:  k.record,
				Finish: func(_ *vnet.Network, out *results.Run) error { return k.finish(out) },
			}, nil
		},
	})
}

// book is the records of the connections of a run.
type book struct {
	r    *observe.Run
	zip  deter.Zipper
	made [][2]*deter.Recorder
	logs [][]*deter.Log
}

// recordLimit bounds the record of one end of a connection, in bytes.
const recordLimit = 8 << 20

// record starts recording.
func (k *book) record(n *vnet.Network) {
	n.OnStream(func(f *vnet.Flow, a, b *stack.Options) (stack.Tap, stack.Tap) {
		h := deter.Header{Build: k.r.Program, Group: k.r.Doc.Workload[f.Group].Group,
			Name: fmt.Sprintf("%s %d > %s %d", n.HostName(f.Src), a.LocalPort, n.HostName(f.Dst), b.LocalPort)}
		pair := [2]*deter.Recorder{deter.NewRecorder(h, recordLimit, &k.zip), deter.NewRecorder(h, recordLimit, &k.zip)}
		k.made = append(k.made, pair)
		return pair[0], pair[1]
	})
}

// finish replays the records, adds what went wrong to the results, and stores the records
// where the results go.
func (k *book) finish(out *results.Run) error {
	for _, pair := range k.made {
		if a, b := pair[0].Log(), pair[1].Log(); a != nil && b != nil {
			k.logs = append(k.logs, []*deter.Log{a, b})
		}
	}
	put := func(group, name string, v float64) {
		out.Values[name] += v
		out.Values[group+"."+name] += v
	}
	for _, g := range k.r.Doc.Groups() {
		for c := range deter.NumCauses {
			put(g, diagnosed(c), 0)
		}
		put(g, "connections_replayed_total", 0)
		put(g, "connections_diverged_total", 0)
	}
	packets, bytes := uint64(0), 0
	for _, logs := range k.logs {
		packets += logs[0].Packets + logs[1].Packets
		bytes += len(logs[0].Events) + len(logs[1].Events)
		group := logs[0].Group
		d, err := deter.Diagnose(logs, deter.DefaultRules)
		if diverged := new(deter.Diverged); errors.As(err, &diverged) {
			put(group, "connections_diverged_total", 1)
			out.Warnings = append(out.Warnings, err.Error())
			continue
		} else if err != nil {
			return err
		}
		put(group, "connections_replayed_total", 1)
		for i := range d.Intervals {
			var has [deter.NumCauses]bool
			for _, f := range d.Intervals[i].Findings {
				has[f.Cause] = true
			}
			for c, there := range has {
				if there {
					put(group, diagnosed(deter.Cause(c)), 1)
				}
			}
		}
	}
	if packets > 0 { // each is sent and, unless lost, received
		out.Values["record_bytes_per_packet"] = 2 * float64(bytes) / float64(packets)
	}
	if k.r.Dir == "" {
		return nil
	}
	return k.write(k.r.Dir, k.r.Name)
}

func diagnosed(c deter.Cause) string {
	return "diagnosed_" + strings.ReplaceAll(c.String(), "-", "_") + "_total"
}

// write stores the records of a run for gfabric diagnose.
func (k *book) write(dir, name string) error {
	dir = filepath.Join(dir, "connections")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var b []byte
	for _, logs := range k.logs {
		for _, l := range logs {
			var err error
			if b, err = l.Append(b); err != nil {
				return err
			}
		}
	}
	return wholefile.WriteBytes(filepath.Join(dir, name+".gtcp"), 0o600, b)
}
