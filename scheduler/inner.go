package scheduler

import "gswitch/feature"

// Divided is a Discipline, or a Gate, that has queues of its own.
type Divided interface {
	// Inside returns them as they are now. It shares nothing with what they become.
	Inside() *Inside
}

// Inside are queues inside an egress queue. They count since the order, or the admission, came.
type Inside struct {
	// Counters are what each of them counts. Their labels are those of Kind and of the name of a queue,
	// and one for the counter's only value if it has Values.
	Counters []feature.Counter
	Kind     string
	Queues   []Inner
}

// Inner is a queue inside an egress queue.
type Inner struct {
	Name       string
	Size       uint64 // as it was declared
	InPackets  bool   // the unit of Size
	Packets    uint64 // waiting
	Bytes      uint64
	MaxPackets uint64
	Counts     []int64 // in the order of Inside.Counters
}

// Labels are those of the values of a counter, for one of the queues.
func (in *Inside) Labels(counter int, q *Inner) []string {
	return append([]string{in.Kind, q.Name}, in.Counters[counter].Values...)
}

// Inside returns the queues inside what holds the frames of a queue that come now, and inside what decides for
// them, nil where it has none.
func (p *Port) Inside(queue int) (held, admitting *Inside) {
	d, _ := p.Serving(queue)
	return inside(d), inside(p.Admitting(queue))
}

func inside(v any) *Inside {
	if d, ok := v.(Divided); ok {
		return d.Inside()
	}
	return nil
}
