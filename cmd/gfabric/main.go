// Command gfabric is package cli/gfabric as a program.
package main

import (
	"os"

	"gswitch/cli/gfabric"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(gfabric.Main(version)) }
