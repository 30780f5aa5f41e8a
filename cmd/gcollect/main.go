// Command gcollect is package cli/gcollect as a program.
package main

import (
	"os"

	"gswitch/cli/gcollect"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(gcollect.Main(version)) }
