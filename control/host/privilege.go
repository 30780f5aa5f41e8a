package host

import (
	"path/filepath"

	"gswitch/control/privilege"
)

// Need is what the daemon does once it runs: of its configuration, and of the
// files that it reads again and writes.
func (d *Daemon) Need() privilege.Need {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := daemonNeed(d.source, d.doc.Control.Socket)
	if d.opts.Record != "" {
		n.Dirs = append(n.Dirs, d.opts.Record)
	}
	for i := range d.doc.Hosts {
		n.NetNS = append(n.NetNS, d.doc.Hosts[i].NetNS)
	}
	return n
}

// Need is what the daemon does once it runs.
func (t *Transparent) Need() privilege.Need {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := daemonNeed(t.opts.Source, t.conf.Control.Socket)
	for i := range t.conf.Bumps {
		n.NetNS = append(n.NetNS, t.conf.Bumps[i].NetNS, t.conf.Bumps[i].InnerNetNS)
	}
	return n
}

// daemonNeed is what every daemon of hosts needs. source is where its configuration
// came from: a file, or "flags".
func daemonNeed(source, socket string) privilege.Need {
	n := privilege.Need{Interfaces: true, Dirs: []string{filepath.Dir(socket)}}
	if source != "flags" {
		n.Read = []string{source}
	}
	return n
}
