package view

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/fabric"
	"gswitch/fabric/lab"
)

// labHosts are the hosts of a fabric that a ghost drives, or that have one in
// their wire.
type labHosts struct {
	top    *fabric.Topology
	byAddr map[netip.Addr]int // node by address
	byNS   map[string]int     // node by namespace
	dist   map[int][]int      // hops to a switch that has hosts, from every node
	dirs   []string           // where ghosts have their sockets

	ghosts map[string]*ghost
	moved  map[uint64]uint64 // bytes at the sample before, by flow
}

// ghost is a daemon that was found, of one host or several.
type ghost struct {
	host   api.HostClient
	bumps  api.TransparentClient
	placed time.Time
	at     map[string]int // node of its hosts by name; those of this fabric only
	wires  bool           // its hosts are bumps in the wire
}

// replace is how long the list of a ghost's hosts is used: its
// configuration may change, and another one may take its socket.
const replace = 5 * time.Second

func (h *labHosts) init(st *lab.Status) {
	h.top, h.byAddr, h.byNS = st.Topology, map[netip.Addr]int{}, map[string]int{}
	h.ghosts, h.moved, h.dist = map[string]*ghost{}, map[uint64]uint64{}, map[int][]int{}
	h.dirs = []string{config.HostSocketDir}
	for _, p := range st.Processes {
		if dir := filepath.Dir(p.Socket); !slices.Contains(h.dirs, dir) {
			h.dirs = append(h.dirs, dir)
		}
	}
	for _, host := range st.Hosts {
		node, ok := st.Topology.Lookup(host.Name)
		if !ok {
			continue
		}
		h.byNS[host.Namespace] = node
		for _, a := range host.Addresses {
			h.byAddr[a.Addr()] = node
		}
	}
}

// flows asks the ghosts of the fabric's hosts. One that does not answer has
// none: hosts come and go.
func (h *labHosts) flows(ctx context.Context) (out []Flow) {
	var paths []string
	for _, dir := range h.dirs {
		found, _ := filepath.Glob(filepath.Join(dir, "*.sock")) // the pattern is well formed
		paths = append(paths, found...)
	}
	for path := range h.ghosts {
		if !slices.Contains(paths, path) {
			delete(h.ghosts, path)
		}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, path := range paths {
		g := h.ghosts[path]
		if g == nil {
			g = &ghost{host: control.DialHost(path), bumps: control.DialTransparent(path)}
			h.ghosts[path] = g
		}
		group.Go(func() {
			if time.Since(g.placed) > replace {
				h.place(ctx, g)
			}
			if len(g.at) == 0 {
				return
			}
			ask := h.queuePairs
			if g.wires {
				ask = h.channels
			}
			v, err := ask(ctx, g)
			if err != nil {
				g.placed = time.Time{}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, v...)
		})
	}
	group.Wait()
	return out
}

// place finds out which hosts a ghost has. What is no ghost, such as a
// gswitch, has none.
func (h *labHosts) place(ctx context.Context, g *ghost) {
	g.placed, g.at = time.Now(), map[string]int{}
	if v, err := g.host.ListHosts(ctx, &api.ListHostsRequest{}); err == nil {
		g.wires = false
		for _, one := range v.Hosts {
			h.put(g, one.Name, one.Netns, one.Pid)
		}
		return
	}
	v, err := g.bumps.ListBumps(ctx, &api.ListBumpsRequest{})
	if err != nil {
		return
	}
	g.wires = true
	for _, one := range v.Bumps {
		h.put(g, one.Name, one.Netns, v.Pid)
	}
}

// put notes which node a host of a ghost is: by the namespace of its
// interface, which is the process's own if none is named.
func (h *labHosts) put(g *ghost, name, namespace string, pid int64) {
	if namespace != "" {
		if node, ok := h.byNS[filepath.Base(namespace)]; ok {
			g.at[name] = node
		}
		return
	}
	own, err := os.Stat(filepath.Join("/proc", strconv.FormatInt(pid, 10), "ns/net"))
	if err != nil {
		return // it has ended
	}
	for ns, node := range h.byNS {
		if there, err := os.Stat(filepath.Join(namespaceDir, ns)); err == nil && os.SameFile(own, there) {
			g.at[name] = node
			return
		}
	}
}

// namespaceDir has a file for each named network namespace (ip-netns(8)).
const namespaceDir = "/run/netns"

// path is the way from a host to another where there is only one: which of
// several a switch chooses, only the switch knows.
func (h *labHosts) path(src, dst int) (path []End) {
	t := h.top
	last := t.Peer(dst, 0)
	dist := h.dist[last.Node]
	if dist == nil {
		dist = t.HopsTo(last.Node)
		h.dist[last.Node] = dist
	}
	for n := t.Peer(src, 0).Node; n != last.Node; {
		next := -1
		for p := range t.Nodes[n].Links {
			if m := t.Peer(n, p).Node; t.Nodes[m].Kind == fabric.Switch && dist[m] == dist[n]-1 {
				if next >= 0 {
					return nil
				}
				next = p
			}
		}
		if next < 0 {
			return nil
		}
		path = append(path, End{n, next})
		n = t.Peer(n, next).Node
	}
	return append(path, End{last.Node, last.Port})
}
