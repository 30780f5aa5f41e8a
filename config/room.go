package config

import "gswitch/units"

// LossyRoom is how lossy classes share a buffer: what documents of switches and scenarios
// have in common.
type LossyRoom struct {
	Alpha   float64    `yaml:"alpha" range:"0.001,64" default:"1" doc:"Lossy classes: dynamic threshold of an egress queue, which may hold alpha times what is free."`
	Ingress units.Size `yaml:"ingress_limit" range:"0,4294967295" doc:"Lossy classes: most bytes of a class that wait of what arrived at one port, as at switches with input queues. None if left out."`
}

// LosslessRoom is the room of lossless classes: what documents of switches and scenarios
// have in common.
type LosslessRoom struct {
	XOFF      units.Size `yaml:"xoff" range:"0,4294967295" doc:"Lossless classes: fixed XOFF threshold in place of the dynamic one."`
	Reserve   units.Size `yaml:"reserve" range:"0,4294967295" doc:"Lossless classes: bytes of each ingress port and class that no other can take."`
	AllowLoss bool       `yaml:"allow_loss" doc:"true: accept a headroom that is too small, for experiments."`
}

// NetworkBuffer is the buffer of every switch of a scenario. It differs from Buffer where
// a simulation does from a machine. Its size is a figure of a paper, not what the memory
// holds. Frames do not come late, so that a pause may end right below its threshold, and
// headroom has no response in it. Links have different rates, so that thresholds and
// headroom may follow them. The keys of lossless classes stand beside the others.
type NetworkBuffer struct {
	Size units.Size `yaml:"size" default:"32MiB" doc:"Whole buffer."`
	LossyRoom
	QueueLimit    units.Size `yaml:"queue_limit" range:"0,4294967295" doc:"Lossy classes: most bytes of an egress queue. None if left out."`
	LosslessAlpha float64    `yaml:"lossless_alpha" range:"0.001,64" default:"0.125" doc:"Lossless classes: a port pauses its neighbour above alpha times what is free."`
	ScaleAlpha    bool       `yaml:"scale_alpha" doc:"true: lossless_alpha grows with a port's rate above that of the hosts, up to 1."`
	LosslessRoom
	XONOffset      units.Size `yaml:"xon_offset" range:"0,4294967295" doc:"Lossless classes: how far below the threshold the pause ends."`
	Headroom       units.Size `yaml:"headroom" range:"0,4294967295" doc:"Bytes of each lossless port and class for what is still under way. Computed from rate, delay and frame size if left out."`
	HeadroomDelays float64    `yaml:"headroom_delays" range:"0,1000" doc:"Headroom as so many one-way delays of the link at its rate."`
}

// Buffer returns what a document of a switch would say, but for what depends on links.
// Copies of floods are like other frames.
func (b *NetworkBuffer) Buffer() Buffer {
	return Buffer{Size: b.Size, LossyRoom: b.LossyRoom, Limit: b.QueueLimit, Floods: 1,
		Lossless: Lossless{Alpha: b.LosslessAlpha, LosslessRoom: b.LosslessRoom, Hysteresis: b.XONOffset, Headroom: Headroom(b.Headroom)}}
}
