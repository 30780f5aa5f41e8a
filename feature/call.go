package feature

import "gswitch/frame"

// Call is a request to a feature, between two steps of its node. Its effect depends only
// on what Encode writes, so that a record of the node holds it.
type Call interface {
	// Encode appends the call to b, in a form that stays the same from version to
	// version. The feature is registered with its inverse.
	Encode(b []byte) []byte
	// Do carries it out; state is the State of the feature's instance.
	Do(now frame.Time, state any)
}

// Refuser is a Call that may be refused when it is carried out.
type Refuser interface {
	// Refusal returns why it was, nil if it was not.
	Refusal() error
}

// Refusal returns why a call that was carried out was refused, nil if it was not.
func Refusal(c Call) error {
	if r, may := c.(Refuser); may {
		return r.Refusal()
	}
	return nil
}
