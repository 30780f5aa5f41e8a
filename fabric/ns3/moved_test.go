package ns3

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gswitch/frame"
)

// moved returns the flows of a draw: each start moved by 0 or 1 ns at random. Draw 0 moves none.
func moved(flows []Flow, draw uint64) []Flow {
	flows = slices.Clone(flows)
	if draw == 0 {
		return flows
	}
	random := rand.NewPCG(draw, 0)
	for i := range flows {
		flows[i].Start += frame.Time(random.Uint64() & 1)
	}
	slices.SortStableFunc(flows, func(a, b Flow) int { return int(a.Start - b.Start) })
	return flows
}

// most is the largest number of draws of an input in reference.json.
const most = 40

var movedTo = flag.String("moved", "", "the directory to which TestMovedFlows writes the draws of all flow files")

// What the simulator reads from a file of moved flows is what runs here. Starts have half a
// nanosecond more in the file, so that those that are no binary fractions lose none.
func TestMovedFlows(t *testing.T) {
	moves := map[int]int{} // by how much
	for _, w := range workloads {
		topo, flows := load(t, w)
		for draw := range uint64(most) {
			want := moved(flows, draw)
			var b bytes.Buffer
			fmt.Fprintln(&b, len(want))
			for i, f := range want {
				fmt.Fprintf(&b, "%d %d %d %d %d %d.%09d5\n", f.Src, f.Dst, f.Class, f.DstPort, f.Bytes, f.Start/frame.Second, f.Start%frame.Second)
				if draw > 0 {
					moves[int(f.Start-flows[i].Start)]++
				}
			}
			name := fmt.Sprintf("%s.%d.flow", w, draw)
			got, err := ParseFlows(name, b.Bytes(), topo)
			if err != nil || !slices.Equal(got, want) || draw == 0 && !slices.Equal(got, flows) {
				t.Errorf("%s: %v, or it is not what was written", name, err)
			}
			if *movedTo != "" {
				if err := os.WriteFile(filepath.Join(*movedTo, name), b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if half := float64(moves[0]) / float64(moves[0]+moves[1]); len(moves) != 2 || half < 0.49 || half > 0.51 {
		t.Errorf("flows by how many ns they were moved: %v", moves)
	}
}
