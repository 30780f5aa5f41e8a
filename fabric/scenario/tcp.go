package scenario

import (
	"gswitch/frame"
	"gswitch/tcp"
	"gswitch/units"
)

// TCP is the stack of hosts whose flows are byte streams.
type TCP struct {
	Enabled bool   `yaml:"enabled" doc:"true: flows go over TCP. Each opens its connection by a handshake, or uses one that is open. Applications send at once what they have (TCP_NODELAY)."`
	Control string `yaml:"control" enum:"reno,cubic,dctcp" default:"cubic" doc:"Congestion control. dctcp needs ecn."`
	ECN     bool   `yaml:"ecn" doc:"true: packets may be marked, and marks are echoed (RFC 3168, with dctcp RFC 8257)."`

	MinRTO units.Duration `yaml:"min_rto" default:"200ms" doc:"Least retransmission timeout. It doubles each time that it runs out in a row."`
	MaxRTO units.Duration `yaml:"max_rto" default:"120s" doc:"Largest retransmission timeout."`

	DelayedACK units.Duration `yaml:"delayed_ack" default:"40ms" doc:"How long an acknowledgement is held back at most for a second segment. 0: none is."`
	QuickACKs  int            `yaml:"quick_acks" range:"0,1000000" default:"16" doc:"Segments at the beginning that are acknowledged at once."`

	SACK          *bool `yaml:"sack" default:"true" doc:"Selective acknowledgements (RFC 2018)."`
	RACK          *bool `yaml:"rack" default:"true" doc:"Losses are found by time as well (RFC 8985)."`
	TailProbe     *bool `yaml:"tail_probe" default:"true" doc:"A probe goes before the timeout for what is lost at the end (RFC 8985 section 7)."`
	DupThresh     int   `yaml:"dup_thresh" range:"1,1000" default:"3" doc:"Duplicate acknowledgements that mean a loss."`
	MaxReordering int   `yaml:"max_reordering" range:"0,1000" doc:"dup_thresh grows up to it with the reordering that is seen, and never shrinks (Linux: tcp_max_reordering). It stays if left out."`

	InitialWindow int        `yaml:"initial_window" range:"1,10000" default:"10" doc:"Segments."`
	SendBuffer    units.Size `yaml:"send_buffer" range:"0,4294967295" default:"4MiB" doc:"Send buffer of a connection."`
	ReceiveBuffer units.Size `yaml:"receive_buffer" range:"0,4294967295" default:"128KiB" doc:"Receive buffer of a connection at first."`
	MaxReceive    units.Size `yaml:"max_receive" range:"0,4294967295" doc:"Up to which it grows as the application reads. 6 MiB, or receive_buffer if that is more, if left out."`
	SlowWindow    bool       `yaml:"slow_window" doc:"true: the window that is offered begins at ten segments and grows by two with each that comes, as in Linux."`
	Nagle         bool       `yaml:"nagle" doc:"true: small segments wait for acknowledgements (RFC 896)."`
	ReadRate      units.Rate `yaml:"read_rate" doc:"How fast receiving applications read. At once if left out."`

	Delay  units.Duration `yaml:"delay" doc:"How long a host takes over a segment that arrived. Under hosts.tcp only: it is that of all."`
	Jitter units.Duration `yaml:"jitter" doc:"Standard deviation of delay (normal distribution; segments stay in order). Under hosts.tcp only."`
}

// Streams returns the TCP settings of the entry's flows, nil if they do not use TCP.
func (e *Entry) Streams(h *Hosts) *TCP {
	t := &h.TCP
	if e.TCP != nil {
		t = e.TCP
	}
	if !t.Enabled {
		return nil
	}
	return t
}

// Streams reports whether any flow uses TCP.
func (d *Document) Streams() bool {
	for i := range d.Workload {
		if d.Workload[i].Streams(&d.Hosts) != nil {
			return true
		}
	}
	return false
}

// Config returns the parameters of connections.
func (t *TCP) Config(mss int) tcp.Config {
	yes := func(b *bool) bool { return b == nil || *b }
	c := tcp.Config{MSS: mss, SACK: yes(t.SACK), Stamps: true, Control: t.Control, ECN: t.ECN, InitialWindow: t.InitialWindow, Nagle: t.Nagle,
		MinRTO: frame.Time(t.MinRTO), MaxRTO: frame.Time(t.MaxRTO), DelayedACK: frame.Time(t.DelayedACK), QuickACKs: t.QuickACKs,
		DupThresh: t.DupThresh, MaxReordering: t.MaxReordering, RACK: yes(t.RACK), TailProbe: yes(t.TailProbe),
		SendBuffer: int(t.SendBuffer), ReceiveBuffer: int(t.ReceiveBuffer), MaxReceive: int(t.MaxReceive), SlowWindow: t.SlowWindow, Lengths: true}
	c.TimeWait = c.MinRTO
	return c
}

// streams checks TCP options.
func (v *validator) streams(key string, t *TCP, hosts bool) {
	if !t.Enabled {
		return
	}
	c := t.Config(int(v.doc.Hosts.Payload) + 12)
	if err := c.Validate(); err != nil {
		v.sec.Fail(key, "%v", err)
	}
	if !hosts && (t.Delay != 0 || t.Jitter != 0) {
		v.sec.Fail(key, "delay and jitter are those of all hosts; write them under hosts.tcp")
	}
	if t.Jitter > 0 && t.Delay == 0 {
		v.sec.Fail(key+".jitter", "stands without a delay that it could be of; set delay, too")
	}
	if v.doc.Hosts.Sizes != (Sizes{}) {
		v.sec.Fail(key, "frames of TCP have the lengths of their headers; leave hosts.sizes out")
	}
}
