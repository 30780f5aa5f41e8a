// Package systems is the list of published systems that this program has: each
// registers itself with the switch when it is imported.
package systems

import (
	_ "gswitch/clocksync/boundary"
	_ "gswitch/clocksync/ordinary"
	_ "gswitch/crossbar/point"
	_ "gswitch/escape/point"
	_ "gswitch/gfc/point"
	_ "gswitch/hull/link"
	_ "gswitch/int/point"
	_ "gswitch/lldp/point"
	_ "gswitch/loopguard/point"
	_ "gswitch/lstf/point"
	_ "gswitch/mirror/mark"
	_ "gswitch/mirror/point"
	_ "gswitch/qcn/point"
	_ "gswitch/rocc/point"
	_ "gswitch/telemetry/flowradar/point"
	_ "gswitch/telemetry/lossradar/nic"
	_ "gswitch/telemetry/lossradar/point"
)
