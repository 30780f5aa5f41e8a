package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/metrics"
	"gswitch/pfc"
	"gswitch/vswitch"
	"gswitch/wire"
)

// view is a snapshot together with the values that ClearCounters stored.
type view struct {
	*metrics.Snapshot
	base map[string]*metrics.Port            // by full name
	self map[string][frame.NumReasons]uint64 // base of the switches' own drops
	sw   string                              // the switch asked for; empty: all
	port string
}

func (s *server) view(snap *metrics.Snapshot, r *api.ListRequest) *view {
	v := &view{Snapshot: snap, base: map[string]*metrics.Port{}, self: map[string][frame.NumReasons]uint64{}, sw: r.Switch, port: r.Port}
	s.d.mu.RLock()
	base := s.d.baseline
	s.d.mu.RUnlock()
	if base != nil {
		for i := range base.Switches {
			v.self[base.Switches[i].Name] = base.Switches[i].SelfDrops
			for j := range base.Switches[i].Ports {
				p := &base.Switches[i].Ports[j]
				v.base[metrics.PortName(base.Switches[i].Name, p.Config.Name)] = p
			}
		}
	}
	return v
}

// known rejects the name of a switch or port that does not exist: an empty list would
// suggest that there is nothing to see.
func (d *Daemon) known(sw, port string) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var ports []string
	found := false
	for u := range d.chosen(sw) {
		found = true
		for name := range u.ports {
			if name == port {
				return nil
			}
			ports = append(ports, metrics.PortName(u.name, name))
		}
	}
	switch {
	case !found && sw != "":
		_, err := d.unit(sw)
		return connect.NewError(connect.CodeNotFound, err)
	case port != "":
		slices.Sort(ports)
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no port %q; there are %s", port, strings.Join(ports, ", ")))
	}
	return nil
}

// ports calls f for every port asked for, with its values when the counters were cleared.
func (v *view) ports(f func(sw *metrics.Switch, p, base *metrics.Port)) {
	for i := range v.Switches {
		sw := &v.Switches[i]
		if v.sw != "" && v.sw != sw.Name {
			continue
		}
		for j := range sw.Ports {
			p := &sw.Ports[j]
			if v.port != "" && v.port != p.Config.Name {
				continue
			}
			base := v.base[metrics.PortName(sw.Name, p.Config.Name)]
			if base == nil || base.Number != p.Number {
				base = &metrics.Port{}
			}
			f(sw, p, base)
		}
	}
}

// since returns the growth of a counter. A value that is smaller than before has
// restarted.
func since(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

func (s *server) ListPorts(_ context.Context, r *api.ListRequest) (*api.Ports, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	return s.ports(s.d.Snapshot(), r), nil
}

func (s *server) ports(snap *metrics.Snapshot, r *api.ListRequest) *api.Ports {
	out := &api.Ports{}
	s.view(snap, r).ports(func(sw *metrics.Switch, p, base *metrics.Port) {
		c := p.Config
		m := &api.Port{Switch: sw.Name, Name: c.Name, Number: uint32(p.Number), Enabled: c.Enabled, Up: p.LinkUp, Rate: c.Scheduler.Rate,
			Mtu:      uint32(c.MTU),
			RxFrames: since(p.Counts.Rx.Frames, base.Counts.Rx.Frames), RxBytes: since(p.Counts.Rx.Bytes, base.Counts.Rx.Bytes),
			TxFrames: since(p.Counts.Tx.Frames, base.Counts.Tx.Frames), TxBytes: since(p.Counts.Tx.Bytes, base.Counts.Tx.Bytes),
			Drops: since(p.Counts.Dropped(), base.Counts.Dropped())}
		for _, a := range c.Addresses {
			m.Addresses = append(m.Addresses, a.String())
		}
		now, before := sumLinks(p.Links), sumLinks(base.Links)
		fillLink(m, p.Links, &now, &before)
		m.Faults = faultsOf(p.Links, &now, &before, s.d.faultText(sw.Name, c.Name))
		m.Drops += m.Xsk.GetTxDropped() + m.Xsk.GetRxDropped() + m.Xsk.GetRxRingFull()
		if s.d.replayed {
			m.State = "down"
			if p.LinkUp {
				m.State = "up"
			}
		}
		if p.DisabledBy != "" {
			m.State = "down: err-disabled by " + p.DisabledBy
		}
		if !c.Enabled {
			m.State = "down: disabled"
		}
		out.Ports = append(out.Ports, m)
	})
	return out
}

func sumLinks(links []dataplane.PortStats) (t dataplane.PortCounters) {
	for i := range links {
		l := &links[i].PortCounters
		t.TxDropped += l.TxDropped
		t.Kicks += l.Kicks
		t.KickAgain += l.KickAgain
		t.KickDrops += l.KickDrops
		t.KickNoMemory += l.KickNoMemory
		t.RxDropped += l.RxDropped
		t.RxRingFull += l.RxRingFull
		t.FillRingEmpty += l.FillRingEmpty
		t.RxInvalid += l.RxInvalid
		t.TxInvalid += l.TxInvalid
		t.TxRingEmpty += l.TxRingEmpty
		t.TxTaken += l.TxTaken
		t.TxWaiting += l.TxWaiting
		t.Faults.Add(&l.Faults)
	}
	return t
}

// LinkOf describes the part of a port below its node.
func LinkOf(links []dataplane.PortStats) *api.Port {
	m := &api.Port{}
	now := sumLinks(links)
	fillLink(m, links, &now, &dataplane.PortCounters{})
	for i := range links {
		m.Up, m.Mtu = m.Up || links[i].Up, uint32(links[i].MTU)
	}
	return m
}

// fillLink fills in the state of the part of a port below its node.
func fillLink(m *api.Port, links []dataplane.PortStats, now, before *dataplane.PortCounters) {
	m.State = "down: not open"
	for i := range links {
		l := &links[i]
		m.Kind, m.State, m.Interface, m.Netns, m.Wire = l.Kind.String(), l.State, l.Interface, l.NetNS, l.Wire
		m.Workers = append(m.Workers, uint32(l.Worker))
		m.Queues += uint32(len(l.Queues))
		m.Setup, m.Warnings, m.Reopened = l.Setup, l.Warnings, max(m.Reopened, l.Reopened)
		if l.Kind == dataplane.XDP && l.Up {
			m.Mode, m.ModeReason = l.Mode.String(), l.ModeWhy
			m.TxBudget, m.MultiBuffer, m.BusyPoll = uint32(l.TxBudget), l.MultiBuffer, l.BusyPoll
		}
	}
	m.Xsk = &api.XSK{
		RxDropped: since(now.RxDropped, before.RxDropped), RxRingFull: since(now.RxRingFull, before.RxRingFull),
		RxFillRingEmpty: since(now.FillRingEmpty, before.FillRingEmpty), RxInvalid: since(now.RxInvalid, before.RxInvalid),
		TxInvalid: since(now.TxInvalid, before.TxInvalid), TxRingEmpty: since(now.TxRingEmpty, before.TxRingEmpty),
		Kicks: since(now.Kicks, before.Kicks), TxDropped: since(now.TxDropped, before.TxDropped),
		KickErrors: since(now.KickAgain+now.KickDrops+now.KickNoMemory, before.KickAgain+before.KickDrops+before.KickNoMemory),
	}
}

func (s *server) ListQueues(_ context.Context, r *api.ListRequest) (*api.Queues, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	out := &api.Queues{}
	s.view(s.d.Snapshot(), r).ports(func(sw *metrics.Switch, p, base *metrics.Port) {
		for q := range p.Queues {
			st, was := &p.Queues[q], &base.Queues[q]
			h := &p.Sojourn[q]
			m := &api.Queue{Switch: sw.Name, Port: p.Config.Name, Queue: uint32(q), Frames: st.Frames, Bytes: st.Bytes, PeakBytes: st.Top,
				MeanBytes:      st.ByteSeconds / max(p.At.Seconds(), 1e-9),
				EnqueuedFrames: since(st.EnqueuedFrames, was.EnqueuedFrames), EnqueuedBytes: since(st.EnqueuedBytes, was.EnqueuedBytes),
				DequeuedFrames: since(st.DequeuedFrames, was.DequeuedFrames), DequeuedBytes: since(st.DequeuedBytes, was.DequeuedBytes),
				EcnMarkedFrames: since(st.Marked, was.Marked), Drops: since(p.Counts.QueueDrops[q], base.Counts.QueueDrops[q]),
				Paused:     st.PausedUntil > p.At,
				SojournP50: uint64(h.Quantile(0.5)), SojournP99: uint64(h.Quantile(0.99)), SojournMax: uint64(h.Quantile(1))}
			m.Order, m.Admission = p.Order[q], p.Admission[q]
			m.Policy, m.Shadow, m.Draining = innerQueues(p.Inside[q]), innerQueues(p.Beside[q]), uint64(p.Draining[q])
			m.PushedOut, m.Shed = since(st.Evicted, was.Evicted), since(st.Shed, was.Shed)
			if v := p.Inversions[q]; v != nil {
				n := v.Frames
				if w := base.Inversions[q]; w != nil {
					n = since(n, w.Frames)
				}
				m.Inversions, m.RankGapP99, m.RankGapMax = &n, uint64(v.Gap.Quantile(0.99)), uint64(v.Gap.Quantile(1))
			}
			out.Queues = append(out.Queues, m)
		}
	})
	return out, nil
}

func (s *server) ListFDB(_ context.Context, r *api.ListRequest) (*api.FDB, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	d := s.d
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := &api.FDB{}
	now := d.engine.Now()
	for u := range d.chosen(r.Switch) {
		fdb, cfg := u.sw.FDB(), u.sw.Program().Config
		out.Capacity += uint64(fdb.Cap())
		for e := range fdb.Entries {
			name := fmt.Sprint(e.Port)
			if int(e.Port) < len(cfg.Ports) {
				name = cfg.Ports[e.Port].Name
			}
			if r.Port != "" && r.Port != name {
				continue
			}
			out.Total++
			if r.Limit == 0 || len(out.Entries) < int(r.Limit) {
				m := &api.FDBEntry{Switch: u.name, Vlan: uint32(e.VID()), Mac: wire.MACFromUint64(e.MAC()).String(), Port: name, Static: e.Static}
				if !e.Static {
					m.AgeSeconds = max(0, (now - e.Seen).Seconds())
				}
				out.Entries = append(out.Entries, m)
			}
		}
	}
	slices.SortFunc(out.Entries, func(a, b *api.FDBEntry) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Vlan, b.Vlan), cmp.Compare(a.Mac, b.Mac))
	})
	return out, nil
}

func (s *server) ListRoutes(_ context.Context, r *api.ListRequest) (*api.Routes, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	d := s.d
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := &api.Routes{}
	for u := range d.chosen(r.Switch) {
		counts, err := d.sum(u, (*vswitch.Node).RouteCounts)
		if err != nil {
			return nil, err
		}
		for e := range u.sw.Program().Routes {
			out.Total++
			if r.Limit != 0 && len(out.Routes) >= int(r.Limit) {
				continue
			}
			m := &api.Route{Switch: u.name, Prefix: e.Prefix.String(), Kind: e.Kind}
			if e.Kind == "via" {
				m.Kind = "static"
			}
			for _, h := range e.Via {
				m.NextHops = append(m.NextHops, &api.NextHop{Via: h.Via.String(), Weight: h.Weight})
			}
			if e.Networks != "" {
				m.NextHops = append(m.NextHops, &api.NextHop{Interface: e.Networks})
			}
			if int(e.ID) < len(counts) {
				m.Frames, m.Bytes = counts[e.ID].Frames, counts[e.ID].Bytes
			}
			out.Routes = append(out.Routes, m)
		}
	}
	return out, nil
}

// sum adds up the counters of a switch's workers.
func (d *Daemon) sum(u *unit, read func(*vswitch.Node, []vswitch.Traffic) []vswitch.Traffic) ([]vswitch.Traffic, error) {
	var total []vswitch.Traffic
	for i, w := range u.workers {
		own := make([]vswitch.Traffic, 0, len(total))
		if err := d.engine.Worker(w).Do(func(frame.Time) { own = read(u.sw.Nodes[i], own) }); err != nil {
			return nil, err
		}
		for j := range own {
			if j == len(total) {
				total = append(total, vswitch.Traffic{})
			}
			total[j] = total[j].Plus(own[j])
		}
	}
	return total, nil
}

func (s *server) ListNeighbors(_ context.Context, r *api.ListRequest) (*api.Neighbors, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	d := s.d
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := &api.Neighbors{}
	for u := range d.chosen(r.Switch) {
		var list []vswitch.Neighbor
		if err := d.engine.Worker(u.workers[0]).Do(func(frame.Time) { list = u.sw.Nodes[0].Neighbors() }); err != nil {
			return nil, err
		}
		slices.SortFunc(list, func(a, b vswitch.Neighbor) int { return a.Addr.Compare(b.Addr) })
		for _, n := range list {
			m := &api.Neighbor{Switch: u.name, Address: n.Addr.String(), Interface: n.Interface, State: n.State}
			if !n.MAC.IsZero() {
				m.Mac = n.MAC.String()
			}
			out.Neighbors = append(out.Neighbors, m)
		}
	}
	return out, nil
}

func (s *server) ListACLs(_ context.Context, r *api.ListRequest) (*api.ACLs, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	d := s.d
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := &api.ACLs{}
	for u := range d.chosen(r.Switch) {
		counts, err := d.sum(u, (*vswitch.Node).RuleCounts)
		if err != nil {
			return nil, err
		}
		prog := u.sw.Program()
		applied := map[string][]string{}
		for _, p := range prog.Config.Ports {
			applied[p.ACL] = append(applied[p.ACL], p.Name)
		}
		prog.Rules(func(list string, rule *vswitch.ACLRule, id uint32) bool {
			m := &api.ACLRule{Switch: u.name, Acl: list, Seq: uint32(-rule.Priority), Name: rule.Name, Rule: rule.Text, Ports: applied[list]}
			if int(id) < len(counts) {
				m.Frames, m.Bytes = counts[id].Frames, counts[id].Bytes
			}
			out.Rules = append(out.Rules, m)
			return true
		})
	}
	return out, nil
}

func (s *server) ListBuffers(_ context.Context, r *api.ListRequest) (*api.Buffers, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	v := s.view(s.d.Snapshot(), r)
	out := &api.Buffers{}
	for i := range v.Switches {
		sw := &v.Switches[i]
		if r.Switch != "" && r.Switch != sw.Name {
			continue
		}
		for w := range sw.Buffers {
			b := &sw.Buffers[w]
			out.Buffers = append(out.Buffers, &api.Buffer{Switch: sw.Name, Worker: uint32(w), Size: b.Size, Held: b.Held, SharedSize: b.Shared, Shared: b.InShared})
		}
	}
	v.ports(func(sw *metrics.Switch, p, _ *metrics.Port) {
		for class := range 8 {
			g := sw.Group(p, class)
			if !g.Lossless && g.Peak == 0 {
				continue
			}
			out.Groups = append(out.Groups, &api.BufferGroup{Switch: sw.Name, Port: p.Config.Name, Class: uint32(class), Lossless: g.Lossless,
				Reserved: g.Reserved, Shared: g.Shared, Headroom: g.Headroom, HeadroomSize: g.HeadroomSize, Peak: g.Peak, HeadroomPeak: g.HeadroomPeak, Xoffs: g.XOFFs, Drops: g.Drops})
		}
	})
	return out, nil
}

func (s *server) ListPFC(_ context.Context, r *api.ListRequest) (*api.PFC, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	out := &api.PFC{}
	s.view(s.d.Snapshot(), r).ports(func(sw *metrics.Switch, p, base *metrics.Port) {
		fc := &sw.Program.Config.PFC
		for class := range p.Classes {
			if fc.Mode == pfc.Off || fc.Classes>>class&1 == 0 {
				continue
			}
			st, was, now := &p.PFC, &base.PFC, p.Classes[class]
			out.Classes = append(out.Classes, &api.PFCClass{Switch: sw.Name, Port: p.Config.Name, Class: uint32(class),
				Paused: now.Paused, Asking: now.XOFFSent, Storm: now.Storm,
				RxXoff: since(st.RxXOFF[class], was.RxXOFF[class]), RxXon: since(st.RxXON[class], was.RxXON[class]),
				TxXoff: since(st.TxXOFF[class], was.TxXOFF[class]), TxXon: since(st.TxXON[class], was.TxXON[class]),
				PausedSeconds: (st.PausedTime[class] - was.PausedTime[class]).Seconds(), AskedSeconds: (st.RequestTime[class] - was.RequestTime[class]).Seconds(),
				Storms: since(st.Storms[class], was.Storms[class])})
		}
	})
	return out, nil
}

func (s *server) ListWorkers(context.Context, *api.ListRequest) (*api.Workers, error) {
	if s.d.replayed {
		return &api.Workers{}, nil // workers are not part of a record
	}
	st := s.d.engine.Stats()
	out := &api.Workers{Memory: &api.Memory{Chunks: uint64(st.Chunks), FreeChunks: uint64(st.FreeChunks), HeapBytes: st.GC.HeapBytes,
		GcCycles: st.GC.Cycles, GcPauseMaxSeconds: st.GC.PauseMax, HugePages: st.HugePages}}
	for i := range st.Workers {
		w := &st.Workers[i]
		m := &api.Worker{Worker: uint32(i), Name: w.Name, Poll: w.Poll.String(), Cpu: -1, Ports: uint32(w.Ports), RunningSeconds: w.Running.Seconds(),
			BusyRatio: w.BusyShare(), Loops: w.Loops, IdleLoops: w.IdleLoops, Sleeps: w.Sleeps, MaxLoop: uint64(w.MaxLoop),
			LatenessP50: uint64(w.Lateness.Quantile(0.5)), LatenessP99: uint64(w.Lateness.Quantile(0.99)), LatenessMax: w.Lateness.Max}
		if w.Pin {
			m.Cpu = int32(w.CPU)
		}
		var vectors, frames uint64
		for n, times := range w.Vectors[1:] {
			vectors += times
			frames += uint64(n+1) * times
		}
		if vectors > 0 {
			m.FramesPerVector = float64(frames) / float64(vectors)
		}
		if w.Kicks > 0 {
			m.FramesPerKick = float64(w.KickFrames) / float64(w.Kicks)
		}
		out.Workers = append(out.Workers, m)
	}
	return out, nil
}

func (s *server) ListDrops(_ context.Context, r *api.ListRequest) (*api.Drops, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	return s.drops(s.d.Snapshot(), r), nil
}

func (s *server) drops(snap *metrics.Snapshot, r *api.ListRequest) *api.Drops {
	v := s.view(snap, r)
	out := &api.Drops{}
	v.ports(func(sw *metrics.Switch, p, base *metrics.Port) {
		for i := range p.Counts.Drops {
			if n := since(p.Counts.Drops[i], base.Counts.Drops[i]); n > 0 {
				reason := frame.Reason(i)
				out.Drops = append(out.Drops, &api.Drop{Switch: sw.Name, Port: p.Config.Name, Reason: reason.String(), Frames: n, Loss: reason.Loss()})
			}
		}
		now, before := sumLinks(p.Links), sumLinks(base.Links)
		// Below the port: frames that the kernel could not deliver, and those that it did
		// not accept.
		for _, below := range []struct {
			reason string
			n      uint64
		}{
			{"rx-ring-full", since(now.RxRingFull, before.RxRingFull)},
			{"rx-dropped", since(now.RxDropped, before.RxDropped)},
			{frame.TxRing.String(), since(now.TxDropped, before.TxDropped)},
		} {
			if below.n > 0 {
				out.Drops = append(out.Drops, &api.Drop{Switch: sw.Name, Port: p.Config.Name, Reason: below.reason, Frames: below.n, Loss: true})
			}
		}
		faultDrops(&now, &before, func(reason string, n uint64) {
			if n > 0 {
				out.Drops = append(out.Drops, &api.Drop{Switch: sw.Name, Port: p.Config.Name, Reason: reason, Frames: n, Loss: true})
			}
		})
	})
	for i := range v.Switches {
		sw := &v.Switches[i]
		for j, n := range sw.SelfDrops {
			if n = since(n, v.self[sw.Name][j]); n > 0 && r.Port == "" && (r.Switch == "" || r.Switch == sw.Name) {
				out.Drops = append(out.Drops, &api.Drop{Switch: sw.Name, Reason: frame.Reason(j).String(), Frames: n, Loss: frame.Reason(j).Loss()})
			}
		}
	}
	return out
}
