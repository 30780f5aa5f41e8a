package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gswitch/control/api"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/export"
	"gswitch/vswitch"
)

// reexport updates the exporter to match the document. The caller holds mu.
func (d *Daemon) reexport() {
	d.exporting = Report(d.exporting, d.log, d.resolved.Export, d.hello, d.takeAll)
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

// hello returns the daemon's introduction to a collector.
func (d *Daemon) hello() telemetry.Hello {
	h := telemetry.Hello{Version: telemetry.HelloVersion, Name: cmp.Or(d.resolved.Export.Name, d.resolved.Switches[0].Name), Boot: uint64(d.engine.Epoch().UnixNano())}
	for i := range d.resolved.Switches {
		s := &d.resolved.Switches[i]
		h.Nodes = append(h.Nodes, telemetry.Node{ID: uint16(s.ID), Name: s.Name, Workers: len(s.WorkersUsed())})
	}
	return h
}

// takeAll collects the reports of all switches.
func (d *Daemon) takeAll(x *export.Exporter) {
	d.taking.Lock()
	defer d.taking.Unlock()
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, u := range d.units {
		d.takeReports(u, x)
	}
}

// takeReports collects the reports of one switch. If the switch is recorded its worker
// collects them, as part of the record.
func (d *Daemon) takeReports(u *unit, x *export.Exporter) {
	id := u.sw.Program().Config.ID
	add := func(_ int, system string, body []byte) { x.Add(telemetry.Report{Kind: system, Node: id, Body: body}) }
	if u.recording != nil {
		if c, err := u.sw.Prepare(vswitch.TakeReports{Taken: add}); err == nil {
			_ = d.engine.Command(u.workers[0], u.sw.Nodes[0], c) // fails only while the engine is ending
		}
		return
	}
	for _, s := range u.sources(d) {
		u.report = feature.TakeReports(s, u.report, func(body []byte) { add(0, s.system, body) })
	}
}

// reporter makes reports on a worker of a switch.
type reporter struct {
	feature.Reporter
	system string
}

// sources returns the reporters of a switch, which it reads again when a new
// configuration may have added some.
func (u *unit) sources(d *Daemon) []reporter {
	if gen := u.sw.Program().Gen; u.sourcesOf == gen && time.Since(u.sourcesAt) < time.Second {
		return u.reporters
	}
	u.sourcesOf, u.sourcesAt = u.sw.Program().Gen, time.Now()
	var found []reporter
	for i, w := range u.workers {
		_ = d.engine.Worker(w).Do(func(frame.Time) { // fails only while the engine is ending
			for _, f := range vswitch.Features() {
				if s, ok := u.sw.Nodes[i].Feature(f.Name).(feature.Reporter); ok {
					found = append(found, reporter{s, f.Name})
				}
			}
		})
	}
	u.reporters = slices.Clip(found)
	return u.reporters
}
