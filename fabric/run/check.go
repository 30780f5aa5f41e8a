package run

import (
	"errors"
	"fmt"

	"gswitch/buffer"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
)

// Check checks before a run whether the scenario's buffers can be divided as it says and
// whether its lossless classes lose no frame. The error names the place in the file and
// the safe value.
func Check(s *scenario.Scenario) error {
	var done *scenario.Document // shared by runs that differ only in their seed
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.Doc == done {
			continue
		}
		done = r.Doc
		c, err := describe(r, false)
		if err != nil {
			return err
		}
		err = vnet.CheckBuffers(c)
		var wrong *vnet.BufferError
		var feature *vnet.FeatureError
		switch {
		case errors.As(err, &feature):
			key := "switch." + feature.Feature
			if feature.Key != "" {
				key += "." + feature.Key
			}
			hint := ""
			if len(s.Runs) > 1 {
				hint = fmt.Sprintf(" (run %q)", r.Name)
			}
			return r.Wrong(s.File, key, "%v%s", feature, hint)
		case errors.As(err, &wrong):
			key, hint := place(wrong, r.Doc)
			if len(s.Runs) > 1 {
				hint = fmt.Sprintf("%s (run %q)", hint, r.Name)
			}
			return r.Wrong(s.File, key, "%v%s", wrong, hint)
		case err != nil:
			return err
		}
	}
	return nil
}

// place returns the key that caused the error, and a hint at what else can be changed.
func place(e *vnet.BufferError, d *scenario.Document) (key, hint string) {
	var b *buffer.Error
	if !errors.As(e, &b) {
		return "switch.buffer", ""
	}
	switch b.What {
	case buffer.OfHeadroom:
		key = "switch.buffer.headroom"
		if d.Switch.Buffer.HeadroomDelays != 0 {
			key = "switch.buffer.headroom_delays"
		}
		if b.Safe != 0 {
			hint = "; gfabric headroom shows how, and allow_loss: true accepts the loss"
		}
	case buffer.OfReserve:
		key = "switch.buffer.reserve"
	case buffer.OfLimit:
		key = "switch.buffer.xoff"
	case buffer.OfXON:
		key = "switch.buffer.xon_offset"
	default:
		key = "switch.buffer.size"
	}
	return key, hint
}
