// Command whole is gfabric with one more scheme of loss recovery: every verb of gfabric is
// here, and scenarios may name the scheme of this module.
package main

import (
	"os"

	"gswitch/cli/gfabric"
)

func main() { os.Exit(gfabric.Main("example")) }
