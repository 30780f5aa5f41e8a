package config

import (
	"strings"
	"testing"

	"gswitch/frame"
)

const slowPort = `
version: 1
switches:
  - name: s
    pfc: {classes: [3], quanta: 100, response: RESPONSE}
    buffer: {size: 4MB, ingress_limit: 90KB, lossless: {xoff: 20KB, headroom: 400KB}}
    ports:
      - {name: a, wire: w, rate: 10Gbps}
      - {name: b, wire: w, rate: 10Gbps, lossless: {alpha: 0.5, headroom: HEADROOM}}
`

// What one port has of its own, and what a switch has of pauses and of ingress ports,
// reaches the node; what cannot be meant is refused under its own key.
func TestPortLossless(t *testing.T) {
	text := func(response, headroom string) []byte {
		return []byte(strings.NewReplacer("RESPONSE", response, "HEADROOM", headroom).Replace(slowPort))
	}
	c, err := Parse("t.yaml", text("5us", "300KB"))
	if err != nil {
		t.Fatal(err)
	}
	v := c.Resolved().Switches[0].VSwitch(nil)
	a, b := &v.Ports[0], &v.Ports[1]
	if a.Headroom != 0 || a.LosslessAlpha != 0 || b.Headroom != 300_000 || b.LosslessAlpha != 0.5 {
		t.Errorf("ports: headroom %d and %d, alpha %g and %g", a.Headroom, b.Headroom, a.LosslessAlpha, b.LosslessAlpha)
	}
	if v.PFC.Response != 5*frame.Microsecond || v.Buffer.IngressLimit != 90_000 {
		t.Errorf("response %v, ingress limit %d", v.PFC.Response.Duration(), v.Buffer.IngressLimit)
	}
	// 100 quanta of 512 bits are 5.12 us at 10 Gb/s.
	for _, x := range []struct{ response, headroom, key string }{
		{"6us", "300KB", "pfc.response"},
		{"5us", "1KB", "ports[1].lossless.headroom"},
		{"5us", "5GB", "ports[1].lossless.headroom"},
	} {
		if _, err := Parse("t.yaml", text(x.response, x.headroom)); err == nil || !strings.Contains(err.Error(), x.key) {
			t.Errorf("response %s, headroom %s: %v; want an error at %s", x.response, x.headroom, err, x.key)
		}
	}
}
