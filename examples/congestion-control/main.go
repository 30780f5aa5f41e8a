// Command halving is gfabric with one more congestion control: every verb of
// gfabric is here, and scenarios may name the algorithm of this module.
package main

import (
	"os"

	"gswitch/cli/gfabric"
)

func main() { os.Exit(gfabric.Main("example")) }
