package config

import (
	"os"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/section"
	"gswitch/units"
	"gswitch/wire"
)

const shortHost = "version: 1\ninterface: veth0\naddress: 10.0.0.1/24\n"

func TestHostDefaults(t *testing.T) {
	doc, err := ParseHosts("h.yaml", []byte(shortHost))
	if err != nil {
		t.Fatal(err)
	}
	h := &doc.Hosts[0]
	if h.Name != "veth0" || doc.Control.Socket != "/run/ghost/veth0.sock" || h.Rate != 10e9 || h.Congestion != "hpcc" || h.Telemetry.Format != "hpcc" ||
		h.Timeout != units.Duration(20*frame.Millisecond) || *h.Worker != 0 || doc.Workers[0].Poll != "adaptive" || h.Region != 16<<20 {
		t.Errorf("defaults are %+v", h)
	}
	c := h.NIC(wire.MAC{2, 0, 0, 0, 0, 1}, 18515)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.Payload != 1000 || c.Overhead != 24 || c.Burst != 50*frame.Microsecond || c.Stack.Bits != 24 || c.DSCP[3] != 24 || c.PFC {
		t.Errorf("the NIC is %+v", c)
	}
	if h.Cap() != 1250 { // 10 Gb/s for 1 ms, in frames of 1000 bytes
		t.Errorf("cap is %d", h.Cap())
	}
	tr := h.Transport()
	if err := tr.Validate(); err != nil {
		t.Error(err)
	}
}

// Zero is a legal time after which a pause counts as long, and not its default.
func TestQuenchAfter(t *testing.T) {
	for text, want := range map[string]frame.Time{"": 10 * frame.Millisecond, ", quench_after: 0s": 0, ", quench_after: 2ms": 2 * frame.Millisecond} {
		doc, err := ParseHosts("h.yaml", []byte("version: 1\nname: h1\ninterface: eth0\naddress: 10.0.0.1/24\npfc: {classes: [3]"+text+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if c := doc.Hosts[0].NIC(wire.MAC{2, 0, 0, 0, 0, 1}, 18515); c.QuenchAfter != want {
			t.Errorf("%q: %v, want %v", text, c.QuenchAfter, want)
		}
	}
}

// The example says everything that the format has, and is right.
func TestHostExample(t *testing.T) {
	text, err := os.ReadFile("host.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := ParseHosts("host.example.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	h := &doc.Hosts[0]
	c := h.NIC(wire.MAC{2, 0, 0, 0, 0, 1}, 18515)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.PaceJitter != 0.1 || h.Recovery != "newreno" || !h.Transport().NoFastRetransmit {
		t.Errorf("jitter %g, recovery %s, %+v", c.PaceJitter, h.Recovery, h.Transport())
	}
	if c.PFCClasses != 1<<3 || !c.CNP.Frames || h.Units().Name == "default" {
		t.Errorf("%+v", c)
	}
	several, err := os.ReadFile("hosts.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := ParseHosts("hosts.example.yaml", several); err != nil || len(doc.Hosts) != 3 {
		t.Errorf("%v: %+v", err, doc)
	}
	text = append(text, several...)
	for key := range schemaKeys(HostsSchema()) {
		if !strings.Contains(string(text), key+":") && !strings.HasPrefix(key, "x_") { // of otherScheme
			t.Errorf("the example does not have the key %s", key)
		}
	}
}

// schemaKeys returns the names in quotes that stand before an object with a
// description.
func schemaKeys(schema []byte) map[string]bool {
	keys := map[string]bool{}
	var last string
	for line := range strings.Lines(string(schema)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutSuffix(line, `": {`); ok && name != `"additionalProperties` {
			last = strings.TrimPrefix(name, `"`)
		}
		if strings.HasPrefix(line, `"description"`) {
			keys[last] = true
		}
	}
	return keys
}

func TestHostErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "h.yaml:1:1: the document is empty",
		"version: 1\naddress: 10.0.0.1/24\n": "interface: is missing",
		"version: 1\ninterface: v\naddress: 10.0.0.1\n": `h.yaml:3:10: address: "10.0.0.1" is not an address with prefix length`,
		shortHost + "gateway: 10.1.0.1\n":               "h.yaml:4:10: gateway: 10.1.0.1 is not on the link 10.0.0.0/24",
		shortHost + "gateway: 10.0.0.1\n":               "the host's own address",
		shortHost + "congestion: hppc\n":                `h.yaml:4:13: congestion: congestion control "hppc" is not known`,
		shortHost + "telemetry: {format: int-md}\n":     "hpcc needs telemetry with the rate of links",
		shortHost + "telemetry: {links: [unlimited]}\n": "telemetry.links[0]: a link without a rate has no units",
		shortHost + "rate: unlimited\n":                 "rate: a host paces",
		shortHost + "mac: 01:00:00:00:00:01\n":          "is not the address of a station",
		shortHost + "payload: 9000\n":                   "9000 is not between 64 and 3800",
		shortHost + "base_rt: 1ms\n":                    `unknown key; did you mean "base_rtt"?`,
		shortHost + "fast_retransmit: false\n":          "h.yaml:4:18: fast_retransmit: false is for recovery: newreno, and this is go-back-n",
		shortHost + "recovery: newrenno\n":              `did you mean "newreno"?`,
		shortHost + "recovery_options: {n: 5}\n":        `h.yaml:4:19: recovery_options: go-back-n: unknown option "n"`,
		shortHost + "recovery: newreno\nfast_retransmit: false\nrecovery_options: {fast_retransmit: true}\n": "fast_retransmit: stands under recovery_options, too",
		shortHost + "pace_jitter: 0.6\n":                   "h.yaml:4:14: pace_jitter: 0.6 is not between 0 and 0.5",
		shortHost + "name: a/b\n":                          `"a/b" is no name`,
		"version: 1\ninterface: v\naddress: 224.0.0.1/4\n": "is not the address of a host",
	} {
		if _, err := ParseHosts("h.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}

const twoHosts = `version: 1
workers: [{poll: spin, cpu: 1}, {}]
hosts:
- {name: a, interface: eth0, netns: n1, address: 10.0.0.1/24}
- {name: b, interface: eth0, netns: n2, address: 10.0.0.2/24, rate: 1Gbps}
- {interface: eth1, address: fd00::1/64, worker: 1, congestion: dcqcn, congestion_options: {g: "0.01"}}
`

// Hosts of a list are dealt out among the workers, and named.
func TestHosts(t *testing.T) {
	c, err := ParseHosts("h.yaml", []byte(twoHosts))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Hosts) != 3 || *c.Hosts[0].Worker != 0 || *c.Hosts[1].Worker != 1 || *c.Hosts[2].Worker != 1 || c.Hosts[2].Name != "eth1" ||
		c.Control.Socket != "/run/ghost/a.sock" || c.Find("b").Rate != 1e9 || c.Find("c") != nil || c.Hosts[0].Rate != 10e9 {
		t.Errorf("%+v", c)
	}
	if e := c.Engine(); len(e.Workers) != 2 || e.Workers[0].CPU != 1 || e.ChunkSize != 2048 {
		t.Errorf("the engine is %+v", e)
	}
	if o := c.Hosts[2].OptionsOf("dcqcn"); o["g"] != "0.01" || c.Hosts[2].OptionsOf("hpcc") != nil {
		t.Errorf("options are %v", o)
	}
	// What is written is the same document.
	for _, text := range []string{twoHosts, shortHost} {
		c, err := ParseHosts("h.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseHosts("h.yaml", c.YAML())
		if err != nil || len(section.Diff(c, again)) != 0 {
			t.Errorf("%v: %v of\n%s", err, section.Diff(c, again), c.YAML())
		}
	}
}

func TestHostsErrors(t *testing.T) {
	const first = "version: 1\nhosts:\n- {name: a, interface: v, address: 10.0.0.1/24}\n"
	for text, want := range map[string]string{
		"version: 1\nhosts: []\n":                                            "h.yaml:2:8: hosts: is empty; name a host",
		first + "- {name: a, interface: w, address: 10.0.0.2/24}\n":          `h.yaml:4:10: hosts[1].name: "a" is the name of hosts[0] too`,
		first + "- {name: b, interface: v, address: 10.0.0.2/24}\n":          "h.yaml:4:24: hosts[1].interface: v is the interface of hosts[0] too",
		first + "- {interface: w, address: 10.0.0.2/24, worker: 1}\n":        "there is no worker 1: workers lists 1",
		first + "- {interface: w, addres: 10.0.0.2/24}\n":                    `unknown key; did you mean "address"?`,
		first + "interface: v\n":                                             "h.yaml:4:1: interface: unknown key",
		first + "- {interface: w, address: 10.0.0.2/24, class: 9}\n":         "hosts[1].class: 9 is not between 0 and 7",
		shortHost + "congestion_options: {alpha: \"2\"}\n":                   "congestion_options: hpcc: ",
		shortHost + "wroker: {poll: spin}\n":                                 `did you mean "worker"?`,
		shortHost + "worker: 3\n":                                            "worker: wants keys and values",
		first + "- {interface: w, address: 10.0.0.2/24, gateway: \"::1\"}\n": "hosts[1].gateway: ::1 is not on the link",
	} {
		if _, err := ParseHosts("h.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}

// Hosts are paired by name, whatever their place.
func TestDiffHosts(t *testing.T) {
	old, err := ParseHosts("h.yaml", []byte(twoHosts))
	if err != nil {
		t.Fatal(err)
	}
	next := old.Clone()
	next.Hosts[0], next.Hosts[1] = next.Hosts[1], next.Hosts[0]
	next.Hosts[0].Rate, next.Hosts[0].PFC.Classes = 2e9, []int{3}
	next.Hosts = next.Hosts[:2]
	var lines []string
	for _, c := range section.Diff(old, next) {
		lines = append(lines, c.String())
	}
	got := strings.Join(lines, "\n")
	for _, want := range []string{"~ hosts[b].rate: 1Gbps -> 2Gbps", "+ hosts[b].pfc.classes: [3]", "- hosts[eth1]: {"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if len(lines) != 3 || old.Hosts[1].Rate != 1e9 {
		t.Errorf("%d changes:\n%s", len(lines), got)
	}
}

// Whatever stands in the file: no panic, and what is right is right for the
// NICs too, and can be written and read again.
func FuzzParseHosts(f *testing.F) {
	example, err := os.ReadFile("host.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(example), shortHost, twoHosts, "version: 1\ninterface: v\naddress: fd00::1/64\ngateway: fd00::2\n", "{", "version: 2", "hosts: 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseHosts("f", []byte(text))
		if err != nil {
			return
		}
		for i := range c.Hosts {
			h := &c.Hosts[i]
			nic := h.NIC(wire.MAC{2, 0, 0, 0, 0, 1}, 18515)
			if err := nic.Validate(); err != nil {
				t.Errorf("%v from\n%s", err, text)
			}
			tr := h.Transport()
			if err := tr.Validate(); err != nil {
				t.Errorf("%v from\n%s", err, text)
			}
			h.Cap()
			h.Units()
			h.Spec()
		}
		c.Engine()
		if _, err := ParseHosts("again", c.YAML()); err != nil {
			t.Errorf("%v of what was written from\n%s", err, text)
		}
	})
}
