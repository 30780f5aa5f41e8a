package systems

import "gswitch/vswitch"

// What a switch cannot have at once, of the systems above and of what the switch
// has by itself, by the keys that documents have for them.
func init() {
	vswitch.Exclude(
		vswitch.Exclusion{A: "admission", B: "crossbar", Why: "which says who is admitted"},
		vswitch.Exclusion{A: "policy", B: "crossbar", Why: "which says who is admitted"},
		vswitch.Exclusion{A: "push_out", B: "crossbar", Why: "whose queues hold back what does not fit"},
		vswitch.Exclusion{A: "order", B: "escape", Why: "which takes flows out of queues"},
		vswitch.Exclusion{A: "admission", B: "escape", Why: "which takes flows out of queues"},
		vswitch.Exclusion{A: "policy", B: "escape", Why: "which takes flows out of queues"},
		vswitch.Exclusion{A: "push_out", B: "escape", Why: "whose places are those of the shared buffer"},
		vswitch.Exclusion{A: "crossbar", B: "escape", Why: "whose places are those of the shared buffer"},
		vswitch.Exclusion{A: "lossradar", B: "escape", Why: "which puts something before the frames of a link, too"},
		vswitch.Exclusion{A: "gfc", B: "escape", Why: "which is for queues that are stopped, and this stops none"},
		vswitch.Exclusion{A: "gfc", B: "crossbar", Why: "which has no shared buffer that could be full to a stage"},
		vswitch.Exclusion{A: "gfc", B: "err_disable", Why: "which looks for neighbours that do not stop, and this stops none"},
		vswitch.Exclusion{A: "order", B: "voq", Why: "which is an order"},
		vswitch.Exclusion{A: "policy", B: "voq", Why: "which is an order"},
		vswitch.Exclusion{A: "escape", B: "voq", Why: "which is an order, from which no flow can be taken"},
	)
}
