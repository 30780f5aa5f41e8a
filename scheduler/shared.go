package scheduler

import "iter"

// Shared is what queues of several ports have in common that one worker serves, such
// as memory. It is the worker's, and orders find it in their Env.
type Shared struct{ by map[sharedKey]any }

type sharedKey struct {
	queue int
	of    any
}

// Sharer is an Order whose queues may have something in common with the queues of the
// same number of other ports.
type Sharer interface {
	Order
	// Shares returns a comparable value that those have alike which share.
	Shares() any
}

// Get returns what the queues of a number share, made by the first of them that asks.
func (s *Shared) Get(queue int, of any, made func() any) any {
	k := sharedKey{queue, of}
	v, ok := s.by[k]
	if !ok {
		if s.by == nil {
			s.by = map[sharedKey]any{}
		}
		v = made()
		s.by[k] = v
	}
	return v
}

// Keep removes what no order of these ports shares. Frames that wait under an order
// which is gone share it until they have left; what asks for the same later on gets
// something new.
func (s *Shared) Keep(ports iter.Seq[*PortConfig]) {
	if len(s.by) == 0 {
		return
	}
	kept := map[sharedKey]any{}
	for p := range ports {
		for i := range p.Queues {
			if o, ok := p.Queues[i].Order.(Sharer); ok {
				k := sharedKey{i, o.Shares()}
				if v, ok := s.by[k]; ok {
					kept[k] = v
				}
			}
		}
	}
	s.by = kept
}
