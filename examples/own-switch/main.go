// Command ownswitch is gfabric, and under the name gswitch the switch, with one
// more order of queues and one more feature of switches.
package main

import (
	"os"
	"path/filepath"

	"gswitch/cli/gfabric"
	"gswitch/cli/gswitch"
)

func main() {
	if filepath.Base(os.Args[0]) == "gswitch" {
		os.Exit(gswitch.Main("example"))
	}
	os.Exit(gfabric.Main("example"))
}
