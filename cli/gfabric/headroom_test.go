package gfabric

import (
	"encoding/json"
	"strings"
	"testing"
)

// The command must print what the DeTail report prints for its link.
func TestHeadroomOfInputQueues(t *testing.T) {
	link := []string{"headroom", "--queues", "input", "--rate", "1Gbps", "--delay", "5476ns", "--frame", "1530B", "--response", "1024ns", "--buffer", "128KiB", "--json"}
	for _, v := range []struct {
		args []string
		want map[string]int64
	}{
		{[]string{"--classes", "8"}, map[string]int64{"skid": 4557, "headroom": 36456, "highest pause": 11827, "frame-safe pause": 10297, "pause": 8192, "unpause": 4557, "peak": 114232,
			"own frame": 1530, "cable": 1369, "response": 128, "peer's frame": 1530}},
		{[]string{"--classes", "2", "--batch", "6KiB"}, map[string]int64{"skid": 13785, "highest pause": 51751, "pause": 32768, "unpause": 13785, "own frame": 6144}},
	} {
		out, code := gfabric(t, append(link, v.args...)...)
		var r calculation
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
			t.Fatalf("exit code %d: %v: %s", code, err, out)
		}
		for name, want := range v.want {
			found := false
			for _, l := range r.Lines {
				if l.Name == name {
					found = true
					if l.Bytes != want {
						t.Errorf("%v: %s is %d, not %d", v.args, name, l.Bytes, want)
					}
				}
			}
			if !found {
				t.Errorf("%v: there is no %s", v.args, name)
			}
		}
	}
}

func TestHeadroomOfSharedBuffers(t *testing.T) {
	// 300 m and 1 us at 100 Gb/s: 37500 + 12500 bytes, two frames of 1542, the
	// pause frame, and the frame that found the pool full.
	out, code := gfabric(t, "headroom", "--rate", "100Gbps", "--cable", "300m", "--response", "1us", "--classes", "2", "--ports", "32", "--buffer", "32MiB")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"cable 37500 B rate/8 * 2 * delay of 1.5us (IEEE 802.1Q annex N)", "= skid 53168 B", "= headroom 54686 B", "= all headroom 3499904 B", "= shared pool 30054528 B"} {
		if !strings.Contains(words, want) {
			t.Errorf("there is no %q in:\n%s", want, out)
		}
	}
}

func TestHeadroomRefuses(t *testing.T) {
	for _, v := range []struct {
		args string
		code int
		want string
	}{
		{"--rate 10", 2, "--rate"},
		{"--cable 10", 2, "write 100m"},
		{"--classes 9", 2, "from 1 to 8"},
		{"--queues output", 2, "neither shared nor input"},
		{"--queues input --cell 80B", 2, "--cell is for"},
		{"--batch 6KiB", 2, "--batch is for"},
		{"--response soon", 2, "--response"},
		{"--ports 64 --classes 8 --buffer 1MiB", 1, "make it at least"},
		{"--queues input --classes 8", 1, "at least"}, // 50 us at 100 Gb/s do not fit into 128 KiB
	} {
		out, code := gfabric(t, append([]string{"headroom"}, strings.Fields(v.args)...)...)
		if code != v.code || !strings.Contains(out, v.want) {
			t.Errorf("%s: exit code %d: %s", v.args, code, out)
		}
	}
}
