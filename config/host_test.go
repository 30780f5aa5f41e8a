package config

import (
	"os"
	"strings"
	"testing"

	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/wire"
)

const shortHost = "version: 1\ninterface: veth0\naddress: 10.0.0.1/24\n"

func TestHostDefaults(t *testing.T) {
	h, err := ParseHost("h.yaml", []byte(shortHost))
	if err != nil {
		t.Fatal(err)
	}
	if h.Name != "veth0" || h.Control.Socket != "/run/ghost/veth0.sock" || h.Rate != 10e9 || h.Congestion != "hpcc" || h.Telemetry.Format != "hpcc" ||
		h.Timeout != Duration(20*frame.Millisecond) || h.Worker.Poll != "adaptive" || h.Region != 16<<20 {
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

// The example says everything that the format has, and is right.
func TestHostExample(t *testing.T) {
	text, err := os.ReadFile("host.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h, err := ParseHost("host.example.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	c := h.NIC(wire.MAC{2, 0, 0, 0, 0, 1}, 18515)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.PFCClasses != 1<<3 || !c.CNP.Frames || h.Units().Name == "default" {
		t.Errorf("%+v", c)
	}
	for key := range schemaKeys(SchemaOf("", new(Host))) {
		if !strings.Contains(string(text), key+":") {
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
		if name, ok := strings.CutSuffix(line, `": {`); ok {
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
		"version: 1\ninterface: v\naddress: 10.0.0.1\n":    `h.yaml:3:10: address: "10.0.0.1" is not an address with prefix length`,
		shortHost + "gateway: 10.1.0.1\n":                  "h.yaml:4:10: gateway: 10.1.0.1 is not on the link 10.0.0.0/24",
		shortHost + "gateway: 10.0.0.1\n":                  "the host's own address",
		shortHost + "congestion: hppc\n":                   `h.yaml:4:13: congestion: congestion control "hppc" is not known`,
		shortHost + "telemetry: {format: int-md}\n":        "hpcc needs telemetry that tells the rate of links",
		shortHost + "telemetry: {links: [unlimited]}\n":    "telemetry.links[0]: a link without a rate has no units",
		shortHost + "rate: unlimited\n":                    "rate: a host paces",
		shortHost + "mac: 01:00:00:00:00:01\n":             "is not the address of a station",
		shortHost + "payload: 9000\n":                      "9000 is not between 64 and 3800",
		shortHost + "base_rt: 1ms\n":                       `unknown key; did you mean "base_rtt"?`,
		shortHost + "name: a/b\n":                          `"a/b" is no name`,
		"version: 1\ninterface: v\naddress: 224.0.0.1/4\n": "is not the address of a host",
	} {
		if _, err := ParseHost("h.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}

// Whatever stands in the file: no panic, and what is right is right for the
// NIC too.
func FuzzParseHost(f *testing.F) {
	example, err := os.ReadFile("host.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(example), shortHost, "version: 1\ninterface: v\naddress: fd00::1/64\ngateway: fd00::2\n", "{", "version: 2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHost("f", []byte(text))
		if err != nil {
			return
		}
		c := h.NIC(wire.MAC{2, 0, 0, 0, 0, 1}, 18515)
		if err := c.Validate(); err != nil {
			t.Errorf("%v from\n%s", err, text)
		}
		tr := h.Transport()
		if err := tr.Validate(); err != nil {
			t.Errorf("%v from\n%s", err, text)
		}
		h.Cap()
		h.Units()
		h.Engine()
		h.Spec()
	})
}
