package scenario

import (
	"fmt"

	"gswitch/section"
)

// replay checks that a run can be repeated with the same packets.
func (v *validator) replay() {
	s := &v.doc.Switch
	if !s.Replay {
		if s.ReplayPriority {
			v.sec.Fail("switch.replay_priority", "is about the second run of switch.replay, which is not true")
		}
		return
	}
	if x := s.Features.Get("lstf"); x == nil || !section.Parts(x)[0].(*featureClasses).Enabled {
		v.sec.Fail("switch.replay", "goes by slack; write lstf: {enabled: true} beside it")
	}
	if v.doc.Hosts.CC != "none" {
		v.sec.Fail("switch.replay", "needs hosts that send the same in both runs, whatever comes of it; write hosts.cc: none with params: {window: none}")
	}
	for i := range v.doc.Workload {
		if !v.doc.Workload[i].Persistent {
			v.sec.Fail(fmt.Sprintf("workload[%d].persistent", i), "switch.replay knows packets again by the connection that they are of; write true, with kind poisson or periodic")
		}
	}
}
