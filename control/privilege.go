package control

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"gswitch/config"
	"gswitch/control/privilege"
)

// privileged returns what privileges a configuration needs that this process lacks.
func privileged(c *config.Config) error {
	interfaces, namespaces := false, false
	for i := range c.Switches {
		for j := range c.Switches[i].Ports {
			p := &c.Switches[i].Ports[j]
			interfaces = interfaces || p.Interface != ""
			namespaces = namespaces || p.NetNS != ""
		}
	}
	return Privileged(interfaces, namespaces)
}

// Privileged returns the privileges that this process lacks for ports over interfaces,
// and for interfaces in other network namespaces.
func Privileged(interfaces, namespaces bool) error {
	lacks := false
	var names []string
	for _, c := range privilege.Missing() {
		if lacks = lacks || c.Needed; c.Needed || c == privilege.Namespaces && namespaces {
			names = append(names, c.Name)
		}
	}
	if !interfaces || names == nil {
		return nil
	}
	return fmt.Errorf("missing privilege: ports over interfaces need %s; run it as root, or see deploy/systemd", strings.Join(names, ", "))
}

// Need returns the privileges that the daemon needs while it runs: for its configuration,
// for the files that it reads again and for those that it writes.
func (d *Daemon) Need() privilege.Need {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := privilege.Need{Interfaces: true, Dirs: []string{filepath.Dir(d.resolved.Control.Socket), cmp.Or(d.opts.Record, RecordDir)}}
	if d.source != "flags" {
		n.Read = append(n.Read, d.source)
	}
	for i := range d.resolved.Switches {
		for j := range d.resolved.Switches[i].Ports {
			p := &d.resolved.Switches[i].Ports[j]
			if n.NetNS = append(n.NetNS, p.NetNS); p.Pcap != nil && p.Pcap.Read != "" {
				n.Read = append(n.Read, p.Pcap.Read)
			}
			if p.Pcap != nil && p.Pcap.Write != "" {
				n.Write = append(n.Write, p.Pcap.Write)
			}
		}
	}
	return n
}
