package gswitch

import (
	"fmt"
	"strings"
	"testing"

	"gswitch/control/api"
)

func TestFaultWords(t *testing.T) {
	for words, want := range map[string]string{
		"":                         "map[]",
		"loss 1% burst 8":          "map[burst:8 loss:1%]",
		"loss none":                "map[loss:none]",
		"none":                     "map[none:]",
		"jitter 3us none":          "map[jitter:3us none:]",
		"loss":                     "loss wants a value",
		"loss 1% loss 2%":          "loss is given twice",
		"reorder 1% reorder_delay": "reorder_delay wants a value",
		"rate 10Mbps":              "rate is an option of the port, no fault: write --rate",
		"none loss":                "none takes no value and stands last",
	} {
		m, err := faultWords(strings.Fields(words))
		got := fmt.Sprint(m)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}

func TestPrintFaults(t *testing.T) {
	var b strings.Builder
	field := func(name, format string, args ...any) { fmt.Fprintf(&b, "%s|%s\n", name, fmt.Sprintf(format, args...)) }
	printFaults(field, nil)
	if b.Len() > 0 {
		t.Errorf("of a port without faults: %s", b.String())
	}
	printFaults(field, &api.Faults{Set: "{loss: 1%}", Lost: map[string]uint64{"link-loss": 5, "link-fcs": 2}, RxLost: 1, Held: 3, Taken: 9})
	want := "faults|{loss: 1%}\n|lost: link-fcs 2, link-loss 5, link-rx-cut 1\n|held back 3, sent twice 0 (no memory for 0), bits inverted in 0\n|to the device 9, under way 0\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
}
