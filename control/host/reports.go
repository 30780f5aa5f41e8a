package host

import (
	"cmp"
	"time"

	"gswitch/control"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	"gswitch/telemetry"
	"gswitch/telemetry/export"
)

// reexport updates the exporter to match the document. The caller holds mu.
func (d *Daemon) reexport() {
	d.exporting = control.Report(d.exporting, d.log, d.doc.Export, d.hello, d.takeReports)
}

// hello returns the daemon's introduction to a collector. Hosts are numbered by their
// position in the document, from 1.
func (d *Daemon) hello() telemetry.Hello {
	h := telemetry.Hello{Version: telemetry.HelloVersion, Name: cmp.Or(d.doc.Export.Name, d.doc.Hosts[0].Name), Boot: uint64(d.engine.Epoch().UnixNano())}
	for i := range d.doc.Hosts {
		h.Nodes = append(h.Nodes, telemetry.Node{ID: uint16(i + 1), Name: d.doc.Hosts[i].Name, Workers: 1})
	}
	return h
}

// takeReports passes the reports of all hosts to the exporter. If a host is recorded its
// worker takes them, as part of the record.
func (d *Daemon) takeReports(x *export.Exporter) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var b []byte
	for i, u := range d.units {
		add := func(feature string, body []byte) {
			x.Add(telemetry.Report{Kind: feature, Node: uint16(i + 1), Body: body})
		}
		if u.recording != nil {
			_ = u.command(agent.OfNIC{Change: hostnic.TakeReports{Taken: add}}) // fails only while the engine is ending
			continue
		}
		for _, s := range u.sources() {
			b = feature.TakeReports(s, b, func(body []byte) { add(s.feature, body) })
		}
	}
}

// reporter makes reports in a host.
type reporter struct {
	feature.Reporter
	feature string
}

// sources returns the reporters of a host. It reads them again once a second, since a new
// configuration may have added some.
func (u *unit) sources() []reporter {
	if time.Since(u.sourcesAt) < time.Second {
		return u.reporters
	}
	u.sourcesAt, u.reporters = time.Now(), nil
	_ = u.worker.Do(func(frame.Time) { // fails only while the engine is ending
		for _, f := range hostnic.Features() {
			if s, ok := u.agent.NIC().Feature(f.Name).(feature.Reporter); ok {
				u.reporters = append(u.reporters, reporter{s, f.Name})
			}
		}
	})
	return u.reporters
}
