package config

import (
	"slices"
	"testing"

	inband "gswitch/int"
	intpoint "gswitch/int/point"
)

func TestTelemetryIsTranslated(t *testing.T) {
	c, err := Load("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	v := c.Resolved().Switches[0].VSwitch(nil)
	want := inband.ProfileFor(10_000_000_000, 100_000_000_000)
	if tel, on := v.Options[intpoint.Name].(intpoint.Config); !on || tel.WholePort || tel.Signal != inband.TxBytes || tel.Profile == nil || *tel.Profile != want || v.ID != 1 {
		t.Errorf("%+v, want on, with %+v", tel, want)
	}
	if p, _ := v.Ports[0].Options[intpoint.Name].(intpoint.Edge); p.Source != inband.INTMD || !slices.Equal(p.SourcePorts, []uint16{4791, 5201}) || !p.Sink {
		t.Errorf("port: %+v", p)
	}
	if p, _ := v.Ports[1].Options[intpoint.Name].(intpoint.Edge); p.Source != inband.None || p.SourcePorts != nil || p.Sink {
		t.Errorf("a port without: %+v", p)
	}
	c.Switches[0].Telemetry = intpoint.Section{INT: true, Stamp: intpoint.Stamp{Signal: "rx", Occupancy: "port"}}
	c.Switches[0].Ports[0].Telemetry = nil
	if tel, _ := c.Resolved().Switches[0].VSwitch(nil).Options[intpoint.Name].(intpoint.Config); !tel.WholePort || tel.Signal != inband.RxBytes || tel.Profile != nil {
		t.Errorf("%+v", tel)
	}
}
