package control

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"gswitch/control/api"
	"gswitch/feature"
	"gswitch/scheduler"
)

// innerQueues converts the queues inside a queue. Each counter has a field of its key.
func innerQueues(in *scheduler.Inside) (out []*api.InnerQueue) {
	if in == nil {
		return nil
	}
	for i := range in.Queues {
		q := &in.Queues[i]
		m := &api.InnerQueue{Name: q.Name, Size: q.Size, InPackets: q.InPackets, Packets: q.Packets, Bytes: q.Bytes, MaxPackets: q.MaxPackets}
		for k := range in.Counters {
			switch f, n := innerField(m, &in.Counters[k]), q.Counts[k]; {
			case f == nil: // counted by a program of another module: metrics have it
			case f.Kind() == protoreflect.Int64Kind:
				m.ProtoReflect().Set(f, protoreflect.ValueOfInt64(n))
			default:
				m.ProtoReflect().Set(f, protoreflect.ValueOfUint64(uint64(n)))
			}
		}
		out = append(out, m)
	}
	return out
}

// innerField returns the field of a counter, nil if there is none.
func innerField(m *api.InnerQueue, c *feature.Counter) protoreflect.FieldDescriptor {
	return m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(c.Keys()[0]))
}

// InnerCount returns what a queue inside a queue counted, nil if the API has no field of it.
func InnerCount(m *api.InnerQueue, c *feature.Counter) any {
	if f := innerField(m, c); f != nil {
		return m.ProtoReflect().Get(f).Interface()
	}
	return nil
}
