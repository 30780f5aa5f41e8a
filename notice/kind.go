package notice

import (
	"cmp"
	"slices"

	"gswitch/frame"
)

// Kind is a kind of notice. Packages register theirs when they are initialized;
// hosts know notices by that alone.
type Kind struct {
	Name string
	// New makes the reader of a host.
	New func() Reader
}

// Reader reads the notices of one kind at a host, and gives them to its reaction
// points: the congestion control of queue pairs.
type Reader interface {
	// Decode reads an ICMP message of type icmp, and returns what it quotes.
	// ours is false if it is not of this kind.
	Decode(msg []byte, icmp uint8) (quote []byte, ours bool, err error)
	// Reacts reports whether a reaction point takes such notices.
	Reacts(point any) bool
	// React gives a reaction point that does what was decoded last.
	React(now frame.Time, point any)
	// OfFrame reports whether a notice concerns the queue pair of the frame that it
	// quotes alone, and not all that are one flow to a switch.
	OfFrame() bool
}

// kinds are those that are registered, by name.
var kinds []Kind

// Register makes a kind of notice known.
func Register(k Kind) {
	at, dup := slices.BinarySearchFunc(kinds, k.Name, func(k Kind, name string) int { return cmp.Compare(k.Name, name) })
	if dup {
		panic("notice: two kinds are named " + k.Name)
	}
	kinds = slices.Insert(kinds, at, k)
}

// Readers makes a reader of each kind for a host.
func Readers() []Reader {
	v := make([]Reader, len(kinds))
	for i := range kinds {
		v[i] = kinds[i].New()
	}
	return v
}
