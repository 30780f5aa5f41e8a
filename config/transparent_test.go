package config

import (
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/hostnic/bump"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/units"
	"gswitch/wire"
)

const transparentDocument = `version: 1
workers: [{poll: sleep}, {}]
transparent:
- name: h1
  inner: g0
  outer: g1
  netns: h1
  rate: 100Mbps
  base_rtt: 8ms
  telemetry: {links: [100Mbps]}
  rules:
  - {protocol: tcp, ports: 22, flows: pass}
  - {prefix: 10.1.0.0/16, ports: 8000-8010, flows: host, congestion: dctcp, telemetry: none, class: 3}
- {inner: g2, outer: g3, congestion: none, queue: 64KiB}
`

func TestTransparent(t *testing.T) {
	c, err := ParseTransparent("t.yaml", []byte(transparentDocument))
	if err != nil {
		t.Fatal(err)
	}
	b := &c.Bumps[0]
	if c.Bumps[1].Name != "g2" || *b.Worker != 0 || *c.Bumps[1].Worker != 1 || b.InnerNetNS != "h1" || c.Control.Socket != "/run/ghost/h1.sock" || *b.Burst != units.Duration(2*frame.Millisecond) {
		t.Errorf("%+v", c)
	}
	n, err := b.Node(1500, 7)
	if err != nil {
		t.Fatal(err)
	}
	if n.MTU != 1500 || n.NIC.Seed != 7 || n.Transport.Recovery != transport.IRN || n.Transport.Cap != 333 || n.Default.CC != "hpcc" || n.Default.Telemetry != inband.HPCC || n.INT == nil {
		t.Errorf("%+v", n)
	}
	if r := n.Rules[0]; r.Proto != wire.ProtoTCP || r.PortLo != 22 || r.PortHi != 22 || r.Flows != bump.Pass {
		t.Errorf("%+v", r)
	}
	if r := n.Rules[1]; r.PortLo != 8000 || r.PortHi != 8010 || r.Flows != bump.PerHost || r.CC != "dctcp" || r.Telemetry != inband.None || r.Class != 3 || r.Prefix.String() != "10.1.0.0/16" {
		t.Errorf("%+v", r)
	}
}

func TestTransparentRefused(t *testing.T) {
	for want, text := range map[string]string{
		"t.yaml:3:3: transparent[0].outer: is missing":                                          "transparent:\n- {inner: g0}",
		"transparent[0].rules[0].ports: \"9-8\" is no port":                                     "transparent:\n- {inner: g0, outer: g1, rules: [{ports: 9-8}]}",
		"transparent[1].name: \"a\" is the name of transparent[0] too":                          "transparent:\n- {name: a, inner: g0, outer: g1}\n- {name: a, inner: g2, outer: g3}",
		"transparent[1].inner: g1 is an interface of another host":                              "transparent:\n- {inner: g0, outer: g1}\n- {inner: g1, outer: g3}",
		"transparent[0].outer: g0 is an interface":                                              "transparent:\n- {inner: g0, outer: g0}",
		"transparent[0].telemetry.format: hpcc needs telemetry":                                 "transparent:\n- {inner: g0, outer: g1, telemetry: {format: none}}",
		"transparent[0].rules[0].congestion: ":                                                  "transparent:\n- {inner: g0, outer: g1, rules: [{congestion: hppc}]}",
		"transparent[0].mark: 128KiB is above queue, 64KiB":                                     "transparent:\n- {inner: g0, outer: g1, queue: 64KiB, mark: 128KiB}",
		"transparent[0].idle: 1ms is not between":                                               "transparent:\n- {inner: g0, outer: g1, idle: 1ms}",
		"transparent[0].worker: there is no worker 3":                                           "transparent:\n- {inner: g0, outer: g1, worker: 3}",
		"transparent: is empty":                                                                 "transparent: []",
		"transparent[0].rate: a host paces":                                                     "transparent:\n- {inner: g0, outer: g1, rate: unlimited}",
		"transparent[0].flows: ":                                                                "transparent:\n- {inner: g0, outer: g1, flows: both}",
		"transparent[0].mac: ff:ff:ff:ff:ff:ff is not":                                          "transparent:\n- {inner: g0, outer: g1, mac: \"ff:ff:ff:ff:ff:ff\"}",
		"transparent[0].congestion_options: ":                                                   "transparent:\n- {inner: g0, outer: g1, congestion_options: {nonesuch: 1}}",
		"transparent[0].telemetry.links[0]: a link without a rate":                              "transparent:\n- {inner: g0, outer: g1, telemetry: {links: [unlimited]}}",
		"transparent[0].rules[0].ports: \"http\" is no port and no range of ports; write 80 or": "transparent:\n- {inner: g0, outer: g1, rules: [{ports: http}]}",
	} {
		_, err := ParseTransparent("t.yaml", []byte("version: 1\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, the error is %v", want, err)
		}
	}
}

func FuzzTransparent(f *testing.F) {
	f.Add([]byte(transparentDocument))
	f.Add([]byte("version: 1\ntransparent:\n- {inner: a, outer: b, rules: [{ports: 1-65535, class: 7}]}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := ParseTransparent("t.yaml", in)
		if err != nil {
			return
		}
		for i := range c.Bumps {
			if _, err := c.Bumps[i].Node(1500, 1); err != nil {
				t.Errorf("what was taken cannot be made: %v", err)
			}
		}
	})
}
