package config

import (
	"strings"
	"testing"

	"gswitch/frame"
)

// A round trip that is to be measured stands in the document as auto, and has a
// value that works until then.
func TestAutoRTT(t *testing.T) {
	const head = "version: 1\ninterface: v\naddress: 10.0.0.1/24\n"
	c, err := ParseHosts("a.yaml", []byte(head+"base_rtt: auto\n"))
	if err != nil {
		t.Fatal(err)
	}
	h := &c.Hosts[0]
	if h.BaseRTT != AutoRTT || h.T() != frame.Millisecond || h.Transport().RTOHigh != 100*frame.Millisecond {
		t.Errorf("%v: T is %v, the timeout %v", h.BaseRTT, h.T(), h.Transport().RTOHigh)
	}
	text := string(c.YAML())
	if !strings.Contains(text, "base_rtt: auto\n") {
		t.Errorf("written as\n%s", text)
	}
	if again, err := ParseHosts("b.yaml", []byte(text)); err != nil || again.Hosts[0].BaseRTT != AutoRTT {
		t.Errorf("read again: %v", err)
	}
	for in, want := range map[string]string{"automatic": "or auto", "2s": "is not between 0s and 1s", "-1ns": "a.yaml:4"} {
		if _, err := ParseHosts("a.yaml", []byte(head+"base_rtt: "+in+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", in, err)
		}
	}
}
