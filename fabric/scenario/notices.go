package scenario

import (
	"fmt"
	"slices"
)

// noticesPass refuses that what congestion points tell could be paused:
// notices travel in the highest class.
func (v *validator) noticesPass() {
	d := v.doc
	const class = 7
	if !d.PFC.Enabled || !d.Switch.RoCC.Enabled && !d.Switch.QCN.Enabled {
		return
	}
	key := "hosts.class"
	if i := slices.Index(d.PFC.Classes, class); i >= 0 {
		key = fmt.Sprintf("pfc.classes[%d]", i)
	} else if len(d.PFC.Classes) > 0 || d.Hosts.Class != class {
		return
	}
	v.sec.Fail(key, "the notices of switch.rocc and switch.qcn travel in class %d, which is lossless here: they would wait behind the congestion that they tell of; use another class", class)
}
