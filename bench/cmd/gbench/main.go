// Gbench measures gswitch and its peers.
//
//	gbench compare [flags] [forwarder...]   forwarders on veth pairs, in turn (root)
//	gbench list                             the forwarders, and which of them can run here
//	gbench memory [flags]                   the in-memory benchmarks of every package, as a table
//	gbench turns [flags] PACKAGE[@CHECKOUT]... benchmarks of packages or checkouts in turn, as a table
//	gbench ceiling [flags]                  what a core can do without a kernel, beside C
//	gbench sim [flags]                      networks in virtual time, as a table
//	gbench gen [flags]                      the generator alone, on any device (root)
//	gbench sink -device DEV                 count and drop what reaches a device (root)
//	gbench ping [flags]                     round trips to a reflector (root)
//	gbench reflect -device DEV              send back what reaches a device (root)
//	gbench clean                            remove what a killed comparison left
package main

import (
	"fmt"
	"os"
	"runtime"
)

type command struct {
	name  string
	about string
	run   func(args []string) error
}

var commands = []command{
	{"compare", "measure forwarders on veth pairs, in turn", compareCmd},
	{"list", "the forwarders, and which of them can run here", listCmd},
	{"memory", "the in-memory benchmarks of every package, as a table", memoryCmd},
	{"turns", "benchmarks of packages or checkouts in turn, on a busy machine", turnsCmd},
	{"ceiling", "what a core can do without a kernel, beside C", ceilingCmd},
	{"sim", "networks in virtual time, as a table", simCmd},
	{"gen", "send frames from a device", genCmd},
	{"sink", "count and drop the IPv4 frames that reach a device", sinkCmd},
	{"ping", "round trips to a reflector", pingCmd},
	{"reflect", "send back the IPv4 frames that reach a device", reflectCmd},
	{"clean", "remove what a killed comparison left", cleanCmd},
}

func main() {
	// Children ask the kernel to die with the thread that started them: that
	// thread must last as long as the process.
	runtime.LockOSThread()
	if len(os.Args) > 1 {
		for _, c := range commands {
			if c.name == os.Args[1] {
				if err := c.run(os.Args[2:]); err != nil {
					fmt.Fprintf(os.Stderr, "gbench %s: %v\n", c.name, err)
					os.Exit(1)
				}
				return
			}
		}
	}
	fmt.Fprintln(os.Stderr, "usage: gbench COMMAND [flags]; gbench COMMAND -h lists the flags")
	for _, c := range commands {
		fmt.Fprintf(os.Stderr, "  %-9s %s\n", c.name, c.about)
	}
	os.Exit(2)
}
