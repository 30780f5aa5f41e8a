package control

import (
	"context"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/metrics"
	"gswitch/vswitch"
)

// ListLimits returns the limits, how much of each is in use, and how often something was
// refused.
func (s *server) ListLimits(_ context.Context, r *api.ListRequest) (*api.Limits, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	d := s.d
	out := &api.Limits{}
	if r.Switch == "" && r.Port == "" && !d.replayed {
		out.Limits = ProcessLimits(d.engine, &d.clients, d.log.Handler())
	}
	snap := d.Snapshot()
	d.mu.RLock()
	defer d.mu.RUnlock()
	if x := d.exporting; x != nil && r.Switch == "" && r.Port == "" {
		c := x.Counts()
		out.Limits = append(out.Limits, &api.Limit{Kind: "memory", Name: "reports that wait for the collector", Unit: "bytes", Used: c.Bytes, Limit: uint64(d.resolved.Export.Memory), Refused: c.Lost, Key: "export.memory"})
	}
	for i := range snap.Switches {
		sw := &snap.Switches[i]
		u, err := d.unit(sw.Name)
		if err != nil || r.Switch != "" && r.Switch != sw.Name {
			continue // removed in the meantime, or not asked for
		}
		var use vswitch.NeighborUse
		if err := d.engine.Worker(u.workers[0]).Do(func(frame.Time) { use = u.sw.Nodes[0].NeighborUse() }); err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
		if r.Port == "" {
			out.Limits = append(out.Limits, d.switchLimits(u, sw, &use)...)
		}
		for j := range sw.Ports {
			if p := &sw.Ports[j]; r.Port == "" || r.Port == p.Config.Name {
				out.Limits = append(out.Limits, portLimits(sw, p, &use)...)
			}
		}
	}
	return out, nil
}

// switchLimits returns the limits of a switch as a whole.
func (d *Daemon) switchLimits(u *unit, sw *metrics.Switch, use *vswitch.NeighborUse) []*api.Limit {
	var buffered, size, chunks, most uint64
	for i := range sw.Buffers {
		buffered, size = buffered+sw.Buffers[i].Held, size+sw.Buffers[i].Size
		chunks, most = chunks+sw.Buffers[i].InChunks, most+sw.Buffers[i].Chunks
	}
	v := []*api.Limit{
		{Kind: "memory", Name: "frames in queues", Unit: "bytes", Used: buffered, Limit: size, Key: "buffer.size"},
		{Kind: "memory", Name: "chunks of frames in queues", Unit: "chunks", Used: chunks, Limit: most, Key: "memory.frames"},
		{Kind: "table", Name: "forwarding database", Unit: "entries", Used: uint64(sw.Addresses), Limit: uint64(sw.Capacity), Refused: sw.Rejected, Key: "fdb.max"},
		{Kind: "table", Name: "neighbours", Unit: "entries", Used: uint64(use.Entries), Limit: vswitch.MaxNeighbors, Refused: sw.Counts.NeighborFull},
		{Kind: "table", Name: "neighbours that are being asked for", Unit: "entries", Used: uint64(use.Unresolved), Limit: vswitch.MaxUnresolved},
		{Kind: "table", Name: "datagrams for the switch that are not whole", Unit: "datagrams", Used: uint64(use.Datagrams), Limit: vswitch.MaxReassemblies},
	}
	if u.kernel != nil {
		routes, prefixes := u.sw.LearnedUse()
		v = append(v,
			&api.Limit{Kind: "table", Name: "routes of the kernel", Unit: "routes", Used: uint64(routes), Limit: vswitch.MaxLearned},
			&api.Limit{Kind: "table", Name: "different prefixes of routes since the start", Unit: "prefixes", Used: uint64(prefixes), Limit: vswitch.MaxPrefixes})
	}
	if rec := u.recording; rec != nil {
		l := &api.Limit{Kind: "memory", Name: "record of the switch", Unit: "bytes", Limit: rec.o.Limit, Key: "run --record-limit"}
		if rec.kept != nil {
			l = &api.Limit{Kind: "memory", Name: "inputs of the switch that are kept", Unit: "bytes", Limit: rec.o.Last, Key: "run --record-last"}
		}
		if s := rec.stats.Load(); s != nil {
			l.Used = s.Bytes
		}
		v = append(v, l)
	}
	for _, l := range v {
		l.Switch = sw.Name
	}
	return v
}

// portLimits returns the limits of a port.
func portLimits(sw *metrics.Switch, p *metrics.Port, use *vswitch.NeighborUse) []*api.Limit {
	queued := uint64(0)
	for q := range p.Queues {
		queued += p.Queues[q].Bytes
	}
	n := use.Ports[p.Number]
	v := []*api.Limit{
		{Kind: "memory", Name: "frames in queues of the port", Unit: "bytes", Used: queued},
		{Kind: "table", Name: "forwarding database, learned at the port", Unit: "entries", Used: uint64(p.Learned), Limit: uint64(sw.PerPort), Refused: p.Rejected, Key: "fdb.per_port"},
		{Kind: "table", Name: "neighbours on account of the port", Unit: "entries", Used: uint64(n.Entries), Limit: vswitch.NeighborsPerPort},
		{Kind: "table", Name: "neighbours that are being asked for by the port", Unit: "entries", Used: uint64(n.Unresolved), Limit: vswitch.UnresolvedPerPort},
	}
	for _, l := range v {
		l.Switch, l.Port = sw.Name, p.Config.Name
	}
	return v
}

// ProcessLimits returns the limits of a daemon's process: memory by use, captures,
// connections, requests, files, and lines of the log.
func ProcessLimits(e *dataplane.Engine, c *Clients, log slog.Handler) []*api.Limit {
	st := e.Stats()
	chunk := uint64(st.ChunkSize)
	v := append(ProgramLimits(st.GC.HeapBytes, c, log),
		&api.Limit{Kind: "memory", Name: "packet memory", Unit: "bytes", Used: uint64(st.Chunks-st.FreeChunks) * chunk, Limit: uint64(st.Chunks) * chunk, Key: "memory.frames"},
		&api.Limit{Kind: "memory", Name: "captures", Unit: "captures", Used: uint64(st.Captures), Limit: dataplane.MaxCaptures})
	return append(v, c.documentLimits()...)
}

// ProgramLimits returns the limits that every listening program has: memory, of which
// heap is the size of its heap in bytes, connections, requests, files, and lines of the
// log.
func ProgramLimits(heap uint64, c *Clients, log slog.Handler) []*api.Limit {
	v := []*api.Limit{
		{Kind: "memory", Name: "resident", Unit: "bytes", Used: resident(), Limit: cgroupMemory()},
		{Kind: "memory", Name: "heap", Unit: "bytes", Used: heap, Limit: goMemory(), Key: "GOMEMLIMIT"},
	}
	v = append(v, c.limits()...)
	files := &api.Limit{Kind: "files", Name: "open files", Unit: "files", Used: openFiles(), Key: "LimitNOFILE"}
	var most unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &most) == nil {
		files.Limit = most.Cur
	}
	v = append(v, files)
	if l, ok := log.(*logHandler); ok {
		v = append(v, l.limit())
	}
	return v
}

// resident returns the resident memory of this process in bytes, 0 if unknown.
func resident() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(f[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// openFiles returns the number of open descriptors, 0 if unknown.
func openFiles() uint64 {
	v, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return uint64(len(v))
}

// cgroupMemory returns the memory limit of the process's cgroup (version 2) in bytes, 0
// if there is none or it cannot be read.
func cgroupMemory() uint64 {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	_, path, found := strings.Cut(strings.TrimSpace(string(text)), "0::")
	if !found {
		return 0
	}
	path, _, _ = strings.Cut(path, "\n")
	if text, err = os.ReadFile("/sys/fs/cgroup" + path + "/memory.max"); err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // max
	}
	return n
}

// goMemory returns Go's memory limit in bytes, 0 if there is none.
func goMemory() uint64 {
	if n := debug.SetMemoryLimit(-1); n != math.MaxInt64 {
		return uint64(n)
	}
	return 0
}
