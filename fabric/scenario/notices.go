package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// noticesPass rejects a configuration in which notices of congestion points could be
// paused: they travel in the highest class.
func (v *validator) noticesPass() {
	d := v.doc
	const class = 7
	var who []string
	for _, f := range d.Features() {
		if f.Notices {
			who = append(who, "switch."+f.Name)
		}
	}
	if !d.PFC.Enabled || who == nil {
		return
	}
	key := "hosts.class"
	if i := slices.Index(d.PFC.Classes, class); i >= 0 {
		key = fmt.Sprintf("pfc.classes[%d]", i)
	} else if len(d.PFC.Classes) > 0 || d.Hosts.Class != class {
		return
	}
	v.sec.Fail(key, "the notices of %s travel in class %d, which is lossless here: they would wait behind the congestion that they report; use another class", strings.Join(who, " and "), class)
}
