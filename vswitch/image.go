package vswitch

import (
	"reflect"

	"gswitch/frame"
)

// imager takes images of switches. Features are parts of the program.
func imager(keep func(b []byte) int) *frame.Imager {
	return &frame.Imager{Kept: []reflect.Type{reflect.TypeFor[*Feature]()}, Bytes: keep}
}

// AppendImage appends an image of a switch on one worker. It must be called between two
// steps and two method calls. keep returns how much of a frame is part of it; elsewhere
// calls f with the chunks that are neither the switch's nor free.
func (sw *Switch) AppendImage(b []byte, keep func(b []byte) int, elsewhere func(f func(chunk frame.Ref))) ([]byte, error) {
	im := imager(keep)
	im.Elsewhere = elsewhere
	return im.Append(b, sw, sw.Nodes[0].pool)
}

// RestoreImage restores an image into a switch that New made from the configuration in
// force at the time of the image. On error the switch must not be used.
func (sw *Switch) RestoreImage(b []byte) error {
	return imager(nil).Restore(b, sw, sw.Nodes[0].pool)
}
