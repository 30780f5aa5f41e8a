package control

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"gswitch/control/api"
	"gswitch/policy"
)

// policyQueues converts the counters of a policy's queues.
func policyQueues(v []policy.QueueStats) (out []*api.PolicyQueue) {
	for i := range v {
		q := &v[i]
		m := &api.PolicyQueue{Name: q.Name, Size: uint64(q.Size), InPackets: q.InPackets, Packets: uint64(q.Packets), Bytes: uint64(q.Bytes), MaxPackets: uint64(q.MaxPackets)}
		for k := range policy.Counters {
			f, n := policyField(m, k), policy.Counters[k].Of(q)
			if f.Kind() == protoreflect.Int64Kind {
				m.ProtoReflect().Set(f, protoreflect.ValueOfInt64(n))
			} else {
				m.ProtoReflect().Set(f, protoreflect.ValueOfUint64(uint64(n)))
			}
		}
		out = append(out, m)
	}
	return out
}

// policyField returns the field of a counter of policy.Counters. There is one for each.
func policyField(m *api.PolicyQueue, counter int) protoreflect.FieldDescriptor {
	return m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(policy.Counters[counter].Name))
}

// PolicyCounts returns what a queue of a policy counted, in the order of policy.Counters.
func PolicyCounts(m *api.PolicyQueue) []any {
	v := make([]any, len(policy.Counters))
	for k := range v {
		v[k] = m.ProtoReflect().Get(policyField(m, k)).Interface()
	}
	return v
}
