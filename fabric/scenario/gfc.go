package scenario

import "gswitch/units"

// GFC is Gentle Flow Control: stages of rates in place of pauses.
type GFC struct {
	Enabled bool       `yaml:"enabled" doc:"true: from switch.buffer.xoff on a port slows its neighbour to half of the link's rate, and to half of what is left at each further threshold, in place of pausing it. Needs pfc.enabled and a fixed xoff."`
	Stages  int        `yaml:"stages" range:"1,15" default:"15" doc:"The last stage, C/2^stages: the least rate."`
	Span    units.Size `yaml:"span" range:"0,4294967295" doc:"Bytes from xoff, the first threshold, to the full buffer. The least that is safe, 2C times the time that a stage takes to act, if left out."`
}

// gfc checks pfc.gfc.
func (v *validator) gfc() {
	d := v.doc
	if !d.PFC.GFC.Enabled {
		return
	}
	switch {
	case !d.PFC.Enabled:
		v.sec.Fail("pfc.gfc", "slows lossless classes, of which there are none; set pfc.enabled: true")
	case d.Switch.Buffer.XOFF == 0:
		v.sec.Fail("pfc.gfc", "begins at a fixed threshold; set switch.buffer.xoff")
	}
}
