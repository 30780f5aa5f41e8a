// Package all is the list of systems of which runs of scenarios measure more than the
// counters that they register with switches and hosts, or which reports name.
package all

import (
	_ "gswitch/fabric/observe/clocks"
	_ "gswitch/fabric/observe/connections"
	_ "gswitch/fabric/observe/copies"
	_ "gswitch/fabric/observe/escape"
	_ "gswitch/fabric/observe/flows"
	_ "gswitch/fabric/observe/losses"
	_ "gswitch/fabric/observe/policies"
	_ "gswitch/fabric/observe/queues"
	_ "gswitch/fabric/observe/secondloop"
	_ "gswitch/fabric/observe/slack"
)
