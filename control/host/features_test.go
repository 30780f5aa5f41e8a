package host

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gswitch/config"
	"gswitch/hostnic"
	"gswitch/units"
	"gswitch/wire"
)

// meter is a feature of hosts that needs no more than the host's rate.
type meter struct {
	Limit units.Rate `yaml:"limit" default:"1Gbps" doc:"Most."`
}

func (m *meter) Options(c *hostnic.Config) (any, error) {
	if uint64(m.Limit) > c.Rate {
		return nil, fmt.Errorf("limit %v is above the rate of %s", m.Limit, c.Name)
	}
	return m.Limit, nil
}

func init() {
	hostnic.Register(hostnic.Feature{Name: "meter", Doc: "Counts.", Section: func() hostnic.Section { return new(meter) },
		New: func(*hostnic.NIC) hostnic.Instance { return hostnic.Instance{} }})
}

// The section of a registered feature stands among the keys of a host, whether it
// is alone or one of a list, and what it refuses has its line.
func TestHostFeatures(t *testing.T) {
	const sole = "version: 1\nname: a\ninterface: a0\naddress: 10.0.0.1/24\nrate: 10Gbps\n"
	const list = "version: 1\nhosts:\n  - {name: a, interface: a0, address: 10.0.0.1/24, rate: 10Gbps, "
	for text, want := range map[string]any{
		sole:                              nil,
		sole + "meter: {}\n":              units.Gbps,
		list + "meter: {limit: 2Gbps}}\n": 2 * units.Gbps,
	} {
		c, err := config.ParseHosts("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		nic := c.Hosts[0].NIC(wire.MAC{2}, 1)
		if got := nic.Options["meter"]; got != want {
			t.Errorf("%s: options %v, want %v", text, got, want)
		}
	}
	_, err := config.ParseHosts("f", []byte(sole+"meter: {limit: 20Gbps}\n"))
	if err == nil || !strings.Contains(err.Error(), "f:6:8: meter: limit 20Gbps is above the rate of a") {
		t.Errorf("the error is %v", err)
	}
}

// What a record holds of a changed host says all of it.
func TestDocumentOfAHost(t *testing.T) {
	const text = "version: 1\nworkers: [{}, {}]\nhosts:\n  - {name: a, interface: a0, address: 10.0.0.1/24, rate: 10Gbps, worker: 1, congestion: hpcc, congestion_options: {eta: 0.9}, meter: {}, region: 1MiB, serve: true}\n"
	c, err := config.ParseHosts("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	back, err := config.ParseHosts("document", document(&c.Hosts[0]))
	if err != nil {
		t.Fatal(err)
	}
	*c.Hosts[0].Worker = 0
	if !reflect.DeepEqual(back.Hosts, c.Hosts) {
		t.Errorf("%+v came back as %+v", c.Hosts, back.Hosts)
	}
}
