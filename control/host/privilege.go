package host

import (
	"path/filepath"

	"gswitch/control/privilege"
)

// Need returns the privileges that the daemon needs while it runs: for its configuration,
// for the files that it reads again and for those that it writes.
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

// Need returns the privileges that the daemon needs while it runs.
func (t *Transparent) Need() privilege.Need {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := daemonNeed(t.opts.Source, t.conf.Control.Socket)
	for i := range t.conf.Bumps {
		n.NetNS = append(n.NetNS, t.conf.Bumps[i].NetNS, t.conf.Bumps[i].InnerNetNS)
	}
	return n
}

// daemonNeed returns the privileges that every daemon of hosts needs. source says where
// its configuration came from: a file, or "flags".
func daemonNeed(source, socket string) privilege.Need {
	n := privilege.Need{Interfaces: true, Dirs: []string{filepath.Dir(socket)}}
	if source != "flags" {
		n.Read = []string{source}
	}
	return n
}
