package systems

import "gswitch/vswitch"

// What cannot be at once, of the systems above and of what the switch has by itself, by
// the keys that documents have for them: in a switch, at a port of it, in a queue of a
// port.
func init() {
	const (
		oneWorker = "give all ports of the switch to one (ports[].workers)"
		byFlow    = "choose by flow (hash, weighted), or take escape out"
		oneSignal = "and senders can follow only one of the two"
	)
	vswitch.Exclude(
		vswitch.Exclusion{A: "admission", B: "crossbar", Why: "which says who is admitted"},
		vswitch.Exclusion{A: "policy", B: "crossbar", Why: "which says who is admitted"},
		vswitch.Exclusion{A: "shadow", B: "crossbar", Why: "which says who is admitted"},
		vswitch.Exclusion{A: vswitch.Dropping, B: "crossbar", Why: "which says who is admitted"},
		vswitch.Exclusion{A: "push_out", B: "crossbar", Why: "whose queues hold back what does not fit"},
		vswitch.Exclusion{A: "order", B: "escape", Why: "which takes flows out of queues"},
		vswitch.Exclusion{A: "admission", B: "escape", Why: "which takes flows out of queues"},
		vswitch.Exclusion{A: "policy", B: "escape", Why: "which takes flows out of queues"},
		vswitch.Exclusion{A: "shadow", B: "escape", Why: "which takes flows out of queues"},
		vswitch.Exclusion{A: "push_out", B: "escape", Why: "whose places are those of the shared buffer"},
		vswitch.Exclusion{A: "crossbar", B: "escape", Why: "whose places are those of the shared buffer"},
		vswitch.Exclusion{A: "lossradar", B: "escape", Why: "which puts something before the frames of a link, too"},
		vswitch.Exclusion{A: "gfc", B: "escape", Why: "which is for queues that are stopped, and this stops none"},
		vswitch.Exclusion{A: "choose", B: "escape", Why: "which keeps places for a flow at one port", Do: byFlow},
		vswitch.Exclusion{A: "gfc", B: "crossbar", Why: "which has no shared buffer that could be full to a stage"},
		vswitch.Exclusion{A: "gfc", B: "err_disable", Why: "which looks for neighbours that do not stop, and this stops none"},
		vswitch.Exclusion{A: "gfc", B: "watchdog", Why: "which looks for stops that do not end, and this stops none", Do: "turn the watchdog off (watchdog: {action: off})"},
		vswitch.Exclusion{A: "escape", B: vswitch.SeveralWorkers, Why: "of which each would have a part of the places", Do: oneWorker},
		vswitch.Exclusion{A: "gfc", B: vswitch.SeveralWorkers, Why: "of which each would have a stage of its own", Do: oneWorker},
		vswitch.Exclusion{A: "clock", B: vswitch.SeveralWorkers, Why: "and a switch has one clock", Do: oneWorker},
		vswitch.Exclusion{A: "order", B: "voq", Why: "which is an order"},
		vswitch.Exclusion{A: "policy", B: "voq", Why: "which is an order"},
		vswitch.Exclusion{A: "escape", B: "voq", Why: "which is an order, from which no flow can be taken"},
		vswitch.Exclusion{A: "escape", B: "pause", Why: "which stops the whole link, and this is of classes", Do: "name the classes in its place (pfc.classes)"},
		vswitch.Exclusion{A: "gfc", B: "pause", Why: "which stops the whole link, and this is of classes", Do: "name the classes in its place (pfc.classes)"},
		vswitch.Exclusion{A: "pause", B: "classes", Why: "which stop classes, and this stops the whole link"},

		vswitch.Exclusion{In: vswitch.OnePort, A: "vlan", B: "address", Why: "with which a port routes, and is in no VLAN", Do: "give the address to the VLAN, or take one of the two out"},
		vswitch.Exclusion{In: vswitch.OnePort, A: "isolated", B: "address", Why: "with which a port routes, and does not bridge"},

		vswitch.Exclusion{In: vswitch.OneQueue, A: "policy", B: "order", Why: "which says in which order frames leave, too"},
		vswitch.Exclusion{In: vswitch.OneQueue, A: "admission", B: "target", Why: "by which the order lets CoDel judge frames, too"},
		vswitch.Exclusion{In: vswitch.OneQueue, A: "admission", B: vswitch.Lossless, Why: "of which no frame may be dropped"},
		vswitch.Exclusion{In: vswitch.OneQueue, A: "shadow", B: vswitch.Lossless, Why: "of which no frame may be dropped, and a shadow is of a queue that may"},
		vswitch.Exclusion{In: vswitch.OneQueue, A: vswitch.Dropping, B: vswitch.Lossless, Why: "of which no frame may be dropped", Do: "serve another queue by it; a policy drops nothing that has congestion = none for all its queues, and no slack"},
		vswitch.Exclusion{In: vswitch.OneQueue, A: "pi", B: "ecn", Why: "in place of which it marks"},
		vswitch.Exclusion{In: vswitch.OneQueue, A: "qcn", B: "hull", Why: oneSignal},
		vswitch.Exclusion{In: vswitch.OneQueue, A: "rocc", B: "hull", Why: oneSignal},
		vswitch.Exclusion{In: vswitch.OneQueue, A: "rocc", B: "qcn", Why: oneSignal},
	)
}
