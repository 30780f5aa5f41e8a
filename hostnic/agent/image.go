package agent

import (
	"errors"
	"fmt"
	"reflect"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/hostnic"
)

// imager takes images of agents. The contents of their memory are payload, and not part
// of an image.
func imager() *frame.Imager {
	im := hostnic.Imager()
	im.Types = append(im.Types, reflect.TypeFor[*watched]())
	for _, err := range []error{errors.New(""), fmt.Errorf("%d", 1), fmt.Errorf("%w", errors.ErrUnsupported)} { // of transfers that just ended
		im.Types = append(im.Types, reflect.TypeOf(err))
	}
	im.BlankLimit = largestRegion
	return im
}

// AppendImage appends an image of the agent between two steps of it. keep returns how much of
// a frame is part of it, elsewhere calls f with the chunks that are neither the agent's nor
// free.
func (a *Agent) AppendImage(b []byte, pool *frame.Pool, keep func(b []byte) int, elsewhere func(f func(chunk frame.Ref))) ([]byte, error) {
	for _, f := range hostnic.Features() {
		if f.Unimaged != "" && a.nic.Feature(f.Name) != nil {
			return nil, fmt.Errorf("no image of a host with %s: %s", f.Name, f.Unimaged)
		}
	}
	im := imager()
	im.Bytes, im.Elsewhere = keep, elsewhere
	for _, t := range a.transfers {
		im.Blank = append(im.Blank, t.Data)
	}
	for _, r := range append([]*Region{a.serving, a.last}, a.retired...) {
		if r != nil {
			im.Blank = append(im.Blank, r.Data)
		}
	}
	for _, s := range a.sessions {
		if s.region != nil {
			im.Blank = append(im.Blank, s.region.Data)
		}
	}
	return im.Append(b, a, pool)
}

// RestoreImage restores an image, with zeroed memory, into an agent that New made from
// the configuration in force at the time of the image. On error the agent must not be
// used.
func (a *Agent) RestoreImage(b []byte, pool *frame.Pool) error {
	if err := imager().Restore(b, a, pool); err != nil {
		return err
	}
	for _, t := range a.transfers {
		var err error
		if t.New, err = cc.Factory(t.CC, t.Options); err != nil {
			return fmt.Errorf("transfer %d: %w", t.Number, err)
		}
	}
	return nil
}
