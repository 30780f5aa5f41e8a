package gfabric

import (
	"encoding/json"
	"strings"
	"testing"
)

// A port that drops what is above its limit of 20 kB drops for one flow, and for its
// frames up to the first that finds no room: each of them is needed.
func TestMinimiseADrop(t *testing.T) {
	record, _, _ := recordedSwitch(t)
	for _, frames := range []bool{false, true} {
		args := []string{record, "--until", "drop:queue-tail", "--minimise", "--json"}
		if frames {
			args = append(args, "--frames")
		}
		said, err := replayOf(t, args...)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		var out minimised
		if err := json.Unmarshal([]byte(said[strings.Index(said, "{"):]), &out); err != nil || !out.Least {
			t.Fatalf("%v: %s", err, said)
		}
		var came int
		for _, x := range out.Needed {
			if x.Kind == "frame" {
				came += int(x.Count)
			} else if x.Kind != "link" {
				t.Errorf("a %s is needed for a drop at the tail: %+v", x.Kind, x)
			}
		}
		// 1,000 bytes each: twenty in the queue, one more that finds no room, and those that
		// left meanwhile.
		if !frames && len(out.Needed) > 3 || came < 21 || came > out.Frames {
			t.Errorf("frames alone %v: %d inputs with %d frames are needed: %s", frames, len(out.Needed), came, said)
		}
	}
	said, err := replayOf(t, record, "--until", "drop:queue-tail", "--minimise")
	if t.Log(said); err != nil || !strings.Contains(said, "none of them can be left out") || !strings.Contains(said, "10.0.0.2:7 > 10.0.0.1:9 UDP") {
		t.Errorf("%v: %s", err, said)
	}
	for _, args := range [][]string{{"--minimise"}, {"--until", "drop", "--minimise", "--trace", "10.0.0.1"}, {"--json"}, {"--until", "drops > 1e9", "--minimise"}} {
		if said, err := replayOf(t, append([]string{record}, args...)...); err == nil {
			t.Errorf("%v was taken: %s", args, said)
		}
	}
}
