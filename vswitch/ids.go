package vswitch

// idSets assign numbers that outlive a program to whatever has a name: counters,
// neighbours and queued frames refer to them.
type idSets struct{ routes, rules, ifaces *idSet }

// idSet assigns numbers to names for the lifetime of the switch, so that counters survive
// a change of the table they belong to.
type idSet struct {
	of   map[string]uint32
	most int // limit of names that routing daemons cause to have numbers
}

func newIDSet() *idSet { return &idSet{map[string]uint32{}, MaxPrefixes} }

func (s *idSet) len() int { return len(s.of) }

// full reports whether a name has no number, and may get none.
func (s *idSet) full(name string) bool {
	_, known := s.of[name]
	return !known && len(s.of) >= s.most
}

func (s *idSet) get(name string) uint32 {
	id, ok := s.of[name]
	if !ok {
		id = uint32(len(s.of))
		s.of[name] = id
	}
	return id
}
