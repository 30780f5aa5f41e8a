package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
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
				parsed, err := Parse("document", []byte(doc.String()))
				if err != nil {
					t.Fatal(err)
				}
				all, rest := parsed.Resolved().Frames(), 0
				if rest = all - all/2 - switches*ports*(fill+c.cable); rest < 0 {
					t.Errorf("%d switches of %d ports with%s: of %d chunks %d are missing", switches, ports, c.port, all, -rest)
				}
			}
		}
	}
}

// A crossbar whose lossless classes have less headroom than small frames may take after a
// pause gives a warning, with the memory that would do, and none with that much memory.
func TestMemoryHoldsHeadroomOfCrossbar(t *testing.T) {
	doc := func(frames string) []byte {
		return []byte("memory: {chunk: 2048" + frames + "}\n" + crossbarDoc("{ingress: 1MiB}", "{classes: [3, 4]}", twoPorts) + "    buffer: {lossless: {response: 500us}}\n")
	}
	if w := Warnings("x.yaml", doc("")); len(w) > 0 {
		t.Error(w)
	}
	w := Warnings("x.yaml", doc(", frames: 4096")).Error()
	at := regexp.MustCompile(`^x\.yaml:5:\d+: switches\[0\]\.crossbar: after a pause lossless classes may still get (\d+) small frames at each port, and the packet memory of 4096 has headroom for (\d+);.* set memory\.frames to at least (\d+), `).FindStringSubmatch(w)
	if at == nil {
		t.Fatalf("warned of %q", w)
	}
	enough, _ := strconv.Atoi(at[3])
	if w := Warnings("x.yaml", doc(", frames: "+at[3])); len(w) > 0 {
		t.Errorf("with %d: %v", enough, w)
	}
	if w := Warnings("x.yaml", doc(fmt.Sprintf(", frames: %d", enough-1))); len(w) != 1 {
		t.Errorf("with %d: %v", enough-1, w)
	}
}
