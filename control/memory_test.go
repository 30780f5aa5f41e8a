package control

import (
	"fmt"
	"strings"
	"testing"

	"gswitch/config"
)

// The packet memory that is computed holds at once what waits in queues, which may take
// half of it, what the kernel may receive into, and what is on emulated cables: else the
// cable of one port could leave others nothing to receive into.
func TestMemoryHoldsCables(t *testing.T) {
	const fill = 2048 // of a port
	for _, c := range []struct {
		port  string
		cable int // the smallest frames on it
	}{{"", 0}, {", rate: 10Gbps, delay: 10us", 149}, {", rate: 10Gbps, delay: 10ms", 4096}, {", delay: 1us", 4096}} {
		for _, ports := range []int{2, 16, 64} {
			for _, switches := range []int{1, 3} {
				var doc strings.Builder
				doc.WriteString("version: 1\nworkers: [{}]\nswitches:\n")
				for s := range switches {
					fmt.Fprintf(&doc, "  - name: s%d\n    ports:\n", s)
					for p := range ports {
						fmt.Fprintf(&doc, "      - {name: p%d, interface: i%dx%d, queues: 1%s}\n", p, s, p, c.port)
					}
				}
				parsed, err := config.Parse("document", []byte(doc.String()))
				if err != nil {
					t.Fatal(err)
				}
				all, rest := chunksFor(parsed.Resolved()), 0
				if rest = all - all/2 - switches*ports*(fill+c.cable); rest < 0 {
					t.Errorf("%d switches of %d ports with%s: of %d chunks %d are missing", switches, ports, c.port, all, -rest)
				}
			}
		}
	}
}
