// Command gswitch is package cli/gswitch as a program.
package main

import (
	"os"

	"gswitch/cli/gswitch"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(gswitch.Main(version)) }
