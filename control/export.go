package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/export"
	"gswitch/vswitch"
)

const (
	// reportPoll is how often reports are taken from the switches: their outboxes
	// hold those of several batches.
	reportPoll = 2 * time.Millisecond
	// reportPatience is how long a daemon that ends waits for its last reports to be
	// acknowledged.
	reportPatience = 2 * time.Second
)

// exporting takes the reports of all switches to a collector.
type exporting struct {
	*export.Exporter
	stop, done chan struct{}
}

// reexport brings the exporter in line with the document. The daemon is locked.
func (d *Daemon) reexport() {
	c := d.resolved.Export
	switch {
	case c == nil:
		d.endExport()
	case d.exporting != nil:
		d.exporting.Change(c.To, uint64(c.Memory), d.hello())
	default:
		x := &exporting{stop: make(chan struct{}), done: make(chan struct{})}
		x.Exporter = export.New(d.log, c.To, uint64(c.Memory), d.hello())
		d.exporting = x
		go d.export(x)
	}
}

// endExport ends the exporter, which takes what there is and waits for a moment until
// that is acknowledged. The daemon is locked. What is returned is closed then.
func (d *Daemon) endExport() <-chan struct{} {
	x := d.exporting
	if x == nil {
		x = &exporting{stop: make(chan struct{}), done: make(chan struct{})}
		close(x.done)
	}
	d.exporting = nil
	close(x.stop)
	return x.done
}

func (s *server) ListExports(context.Context, *api.ListRequest) (*api.Exports, error) {
	d := s.d
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := &api.Exports{}
	if d.exporting == nil {
		return out, nil
	}
	x := d.exporting.Status()
	e := &api.Export{Name: x.Name, To: x.To, Connected: x.Connected, Connections: x.Connects, Sequence: x.Sequence, Acknowledged: x.Acknowledged, Lost: x.Lost,
		Waiting: x.Waiting, WaitingBytes: x.Bytes, MemoryBytes: x.Memory}
	names := map[uint16]string{}
	for i := range d.resolved.Switches {
		names[uint16(d.resolved.Switches[i].ID)] = d.resolved.Switches[i].Name
	}
	for o, n := range x.Origins {
		e.Sources = append(e.Sources, &api.ExportSource{Switch: names[o.Node], System: o.Kind, Reports: n})
	}
	slices.SortFunc(e.Sources, func(a, b *api.ExportSource) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.System, b.System))
	})
	out.Exports = append(out.Exports, e)
	return out, nil
}

// hello is what a collector hears of the daemon.
func (d *Daemon) hello() telemetry.Hello {
	h := telemetry.Hello{Version: telemetry.HelloVersion, Name: cmp.Or(d.resolved.Export.Name, d.resolved.Switches[0].Name), Boot: uint64(d.engine.Epoch().UnixNano())}
	for i := range d.resolved.Switches {
		s := &d.resolved.Switches[i]
		h.Nodes = append(h.Nodes, telemetry.Node{ID: uint16(s.ID), Name: s.Name, Workers: len(s.WorkersUsed())})
	}
	return h
}

// export takes reports until it is stopped, and once more then.
func (d *Daemon) export(x *exporting) {
	defer close(x.done)
	t := time.NewTicker(reportPoll)
	defer t.Stop()
	for last := false; ; {
		d.mu.RLock()
		for _, u := range d.units {
			d.takeReports(u, x.Exporter)
		}
		d.mu.RUnlock()
		if last {
			break
		}
		select {
		case <-x.stop:
			last = true
		case <-t.C:
		}
	}
	x.Close(reportPatience)
	if n := x.Counts().Lost; n > 0 {
		d.log.Warn("reports were lost", "reports", n)
	}
}

// takeReports takes those of one switch. Of one that is recorded its worker takes
// them, so that they belong into the record.
func (d *Daemon) takeReports(u *unit, x *export.Exporter) {
	id := u.sw.Program().Config.ID
	add := func(_ int, system string, body []byte) { x.Add(telemetry.Report{Kind: system, Node: id, Body: body}) }
	if u.recording != nil {
		if c, err := u.sw.Prepare(vswitch.TakeReports{Taken: add}); err == nil {
			_ = d.engine.Command(u.workers[0], u.sw.Nodes[0], c) // refused only while the engine ends
		}
		return
	}
	var b []byte
	for _, s := range u.sources(d) {
		ok := true
		for b, ok = s.TakeReport(b[:0]); ok; b, ok = s.TakeReport(b[:0]) {
			add(0, s.system, b)
		}
	}
}

// reporter is what makes reports on a worker of a switch.
type reporter struct {
	telemetry.Source
	system string
}

// sources returns what makes reports, asked anew where a configuration may have
// brought others.
func (u *unit) sources(d *Daemon) []reporter {
	if gen := u.sw.Program().Gen; u.sourcesOf == gen && time.Since(u.sourcesAt) < time.Second {
		return u.reporters
	}
	u.sourcesOf, u.sourcesAt = u.sw.Program().Gen, time.Now()
	var found []reporter
	for i, w := range u.workers {
		_ = d.engine.Worker(w).Do(func(frame.Time) { // refused only while the engine ends
			for _, f := range vswitch.Features() {
				if s, ok := u.sw.Nodes[i].Feature(f.Name).(telemetry.Source); ok {
					found = append(found, reporter{s, f.Name})
				}
			}
		})
	}
	u.reporters = slices.Clip(found)
	return u.reporters
}
