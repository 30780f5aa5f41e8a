package config

import (
	"net"
	"net/netip"
	"path/filepath"
)

// Control is where the daemon listens.
type Control struct {
	Socket string   `yaml:"socket" doc:"Unix socket of the API. /run/gswitch/NAME.sock with the name of the first switch if left out."`
	Group  string   `yaml:"group" doc:"Group that may use the socket beside the daemon's own user. The daemon's own group if left out."`
	Listen string   `yaml:"listen" doc:"TCP address (host:port) that serves /metrics, /healthz and /readyz. None if left out."`
	Names  []string `yaml:"names" doc:"Names by which the TCP address is asked for, besides IP addresses, localhost and this machine's name. Requests by other names are refused: a web page can have its own name lead here."`
	API    *Remote  `yaml:"api" doc:"What opens the API at the TCP address, too. The API is at the socket only if left out."`
}

// Remote says who may use the API over TCP.
type Remote struct {
	Token string `yaml:"token" doc:"File with a token of at least 32 letters: those who send it (Authorization: Bearer) may. Away from loopback it needs cert and key."`
	Cert  string `yaml:"cert" doc:"File with the certificate (PEM) that the TCP address shows: it uses TLS then, for the metrics as well."`
	Key   string `yaml:"key" doc:"File with the certificate's key (PEM)."`
	CA    string `yaml:"ca" doc:"File with certificates (PEM): clients with a certificate signed by one of them may use the API without a token."`
}

// problems reports to fail what is wrong with a control section.
func (c *Control) problems(fail func(key, format string, args ...any)) {
	if s := c.Socket; s != "" && !filepath.IsAbs(s) {
		fail("control.socket", "%q is not an absolute path", s)
	} else if len(s) > 107 { // sun_path of unix(7), with its final zero
		fail("control.socket", "a socket's path has at most 107 bytes, this one has %d", len(s))
	}
	if l := c.Listen; l != "" {
		if _, port, err := net.SplitHostPort(l); err != nil || !isPort(port) {
			fail("control.listen", "%q is not host:port; write 127.0.0.1:9479", l)
			return
		}
	}
	a := c.API
	if a == nil {
		return
	}
	for _, f := range [...]struct{ key, path string }{{"token", a.Token}, {"cert", a.Cert}, {"key", a.Key}, {"ca", a.CA}} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			fail("control.api."+f.key, "%q is not an absolute path", f.path)
		}
	}
	switch {
	case c.Listen == "":
		fail("control.api", "opens the API at the TCP address, and there is none; give control.listen")
	case (a.Cert == "") != (a.Key == ""):
		fail("control.api", "cert and key belong together; give both, or neither")
	case a.CA != "" && a.Cert == "":
		fail("control.api.ca", "clients show certificates over TLS only; give cert and key")
	case a.Token == "" && a.CA == "":
		fail("control.api", "lets no client use the API; give a token, or ca")
	case a.Token != "" && a.Cert == "" && !loopback(c.Listen):
		fail("control.api.token", "would cross the network in clear; give cert and key, or listen on 127.0.0.1")
	}
}

// loopback reports whether host:port can be reached from this machine only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// Use says what becomes of a file.
type Use uint8

const (
	Reads Use = 1 << iota
	Writes
)

// Files returns the paths that a document names, with what becomes of them: of
// capture files that ports read or write, and of network namespaces. Who may change
// the document but not the files of this machine must not add to them.
func (c *Config) Files() map[string]Use {
	files := map[string]Use{}
	for i := range c.Switches {
		for j := range c.Switches[i].Ports {
			p := &c.Switches[i].Ports[j]
			if p.Pcap != nil {
				files[p.Pcap.Read] |= Reads
				files[p.Pcap.Write] |= Writes
			}
			namespaceFile(files, p.NetNS)
		}
	}
	delete(files, "")
	return files
}

// Files returns the paths that a document names: of network namespaces.
func (c *Hosts) Files() map[string]Use {
	files := map[string]Use{}
	for i := range c.Hosts {
		namespaceFile(files, c.Hosts[i].NetNS)
	}
	return files
}

// namespaceFile notes the path of a network namespace that is none of those
// under /run/netns.
func namespaceFile(files map[string]Use, netns string) {
	if netns != "" && filepath.Base(netns) != netns {
		files[netns] |= Reads
	}
}
