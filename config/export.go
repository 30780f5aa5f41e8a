package config

import (
	"net"

	"gswitch/units"
)

// Export is where a daemon's reports go.
type Export struct {
	To     string     `yaml:"to" need:"yes" doc:"Address (host:port) of a collector: gcollect run."`
	Name   string     `yaml:"name" doc:"Name of this daemon at the collector, the same from start to start. That of the first switch or host if left out."`
	Memory units.Size `yaml:"memory" range:"65536,17179869184" default:"64MiB" doc:"Most that reports take which the collector has not acknowledged. What does not fit is counted as lost."`
}

// problems reports to fail what is wrong with an export section.
func (e *Export) problems(fail func(key, format string, args ...any)) {
	if e == nil || e.To == "" {
		return
	}
	if host, port, err := net.SplitHostPort(e.To); err != nil || host == "" || !isPort(port) {
		fail("export.to", "%q is not host:port; write 10.9.0.1:9477", e.To)
	}
	if len(e.Name) > 64 {
		fail("export.name", "has %d bytes; at most 64 are possible", len(e.Name))
	}
}
