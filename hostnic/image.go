package hostnic

import (
	"reflect"
	"slices"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/transport"
)

// Imager takes and restores images of NICs and of what contains them. What belongs to the
// program is not part of an image: recovery schemes, services of queue pairs and
// features. Constructors for queue pairs that are opened later are made again; the state
// of algorithms is part of the image.
func Imager() *frame.Imager {
	im := &frame.Imager{
		Kept:   []reflect.Type{reflect.TypeFor[*Feature]()},
		Known:  []any{&messageService, &writeService, &packetService, &requestService, &responseService},
		Types:  slices.Concat(algorithms(), schemes()),
		Remade: []reflect.Type{reflect.TypeFor[func(*cc.Env) cc.Algorithm]()},
	}
	for _, k := range transport.Kinds() {
		im.Known = append(im.Known, k)
	}
	return im
}

// schemes returns the types of options that schemes of recovery have of their own.
func schemes() (types []reflect.Type) {
	for _, k := range transport.Kinds() {
		if own := k.Defaults().Own; own != nil {
			types = append(types, reflect.TypeOf(own.Options))
		}
	}
	return types
}

// algorithms returns the types of what congestion control keeps of queue pairs.
func algorithms() (types []reflect.Type) {
	env := cc.Env{Rate: 1e9, BaseRTT: frame.Microsecond, MTU: 1500, Payload: 1000}
	for _, name := range cc.Names() {
		if build, err := cc.Factory(name, nil); err == nil { // which have options without a default cannot be had by others
			types = append(types, reflect.TypeOf(build(&env)))
		}
	}
	return types
}
