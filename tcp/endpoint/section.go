package endpoint

import (
	"fmt"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/tcp"
	"gswitch/tcp/stack"
	"gswitch/units"
)

// Section is tcp in documents of hosts.
type Section struct {
	Congestion    string         `yaml:"congestion" enum:"cubic,reno,dctcp" default:"cubic" doc:"Congestion control of connections. dctcp needs ecn, at both ends."`
	ECN           bool           `yaml:"ecn" doc:"true: congestion marks are asked for and answered (RFC 3168)."`
	MinRTO        units.Duration `yaml:"min_rto" default:"200ms" doc:"Least retransmission timeout."`
	MSS           int            `yaml:"mss" range:"88,1460" default:"1460" doc:"Bytes of payload that a segment to this host may have, the MTU of the interface less 40."`
	ReceiveBuffer units.Size     `yaml:"receive_buffer" range:"2920,1073741823" default:"6MiB" doc:"Up to which a receive buffer grows as the application reads."`
	Connections   int            `yaml:"connections" range:"1,1024" default:"64" doc:"Connections that may be open at once; others are not answered."`
	Services      []Service      `yaml:"services" doc:"What others find at the host's ports. None if left out."`
}

// Service is what listens on a port.
type Service struct {
	Port int    `yaml:"port" range:"1,65535" need:"yes" doc:"Port of TCP."`
	Kind string `yaml:"kind" enum:"http,iperf3,echo,discard" need:"yes" doc:"http: GET /100MB gives so many bytes, PUT and POST take what comes. iperf3: a server for it, over TCP. echo: sends back what comes. discard: takes it."`
}

// firstBuffer is what a receive buffer has at first.
const firstBuffer = 128 << 10

// Options implements hostnic.Section.
func (s *Section) Options(cfg *hostnic.Config) (any, error) {
	c := tcp.Default()
	c.Control, c.ECN, c.MinRTO, c.MSS, c.MaxReceive = s.Congestion, s.ECN, frame.Time(s.MinRTO), s.MSS, int(s.ReceiveBuffer)
	c.ReceiveBuffer, c.Nagle, c.TimeWait = min(firstBuffer, c.MaxReceive), false, 2*frame.Second
	if err := c.Validate(); err != nil {
		return nil, err
	}
	taken := map[int]bool{}
	for _, x := range s.Services {
		if taken[x.Port] {
			return nil, fmt.Errorf("two services are at port %d", x.Port)
		}
		taken[x.Port] = true
	}
	o := stack.Config{Seed: cfg.Seed, Streams: &stack.Streams{TCP: c, Most: s.Connections}}
	full := complete(o, cfg)
	return o, full.Validate()
}
