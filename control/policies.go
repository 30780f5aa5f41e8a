package control

import (
	"gswitch/control/api"
	"gswitch/policy"
)

// policyQueues converts the counters of a policy's queues.
func policyQueues(v []policy.QueueStats) (out []*api.PolicyQueue) {
	for i := range v {
		q := &v[i]
		out = append(out, &api.PolicyQueue{Name: q.Name, Size: uint64(q.Size), InPackets: q.InPackets, Packets: uint64(q.Packets), Bytes: uint64(q.Bytes),
			MaxPackets: uint64(q.MaxPackets), Admitted: q.Admitted, Refused: q.Refused, PushedOut: q.PushedOut, Sent: q.Sent, SentBytes: q.SentBytes,
			Value: q.Value, Marked: q.Marked, Notices: q.Notices, Late: q.Late, LostValue: q.RefusedValue})
	}
	return out
}
