// Command ghost is package cli/ghost as a program.
package main

import (
	"os"

	"gswitch/cli/ghost"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(ghost.Main(version)) }
