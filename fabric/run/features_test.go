package run

import (
	"testing"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/units"
)

// ticker is a feature of hosts that counts periods.
type ticker struct {
	Period units.Duration `yaml:"period" default:"10us" doc:"Between two ticks."`
}

func (t *ticker) Options(*hostnic.Config) (any, error) { return frame.Time(t.Period), nil }

func init() {
	hostnic.Register(hostnic.Feature{Name: "ticker", Doc: "Ticks.", Section: func() hostnic.Section { return new(ticker) },
		Counters: []feature.Counter{{Name: "ticks_total", Help: "Ticks."}, {Name: "ticker_period", Help: "Period.", Gauge: true}},
		New: func(*hostnic.NIC) hostnic.Instance {
			var period, next frame.Time
			ticks := 0
			return hostnic.Instance{
				Adopt: func(o any) hostnic.Stages { period, _ = o.(frame.Time); return 0 },
				Advance: func(now frame.Time) frame.Time {
					for ; next <= now; next += period {
						ticks++
					}
					return next
				},
				Read: func(emit func(int, float64, ...string)) {
					emit(0, float64(ticks))
					emit(1, float64(period))
				},
			}
		}})
}

// A registered feature of hosts is turned on by its section, steps in virtual
// time, and its counters are values that expectations name.
func TestHostFeature(t *testing.T) {
	const text = `version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 1us}}}
workload: [{group: a, kind: flows, flows: [{from: h1, to: h2, size: 100KB}]}]
duration: 1ms
variants:
  - {name: on, set: {hosts.ticker: {enabled: true, period: 100us}}}
  - {name: off, set: {hosts.ticker: {period: 100us}}}
  - {name: bare}
expect:
  - on.ticks_total == 33  # three hosts, from 0 to 1 ms
  - on.ticker_period == 100000
`
	f := execute(t, text, Options{Jobs: 1})
	unmet(t, "all", f.Checks)
	for i := range f.Runs {
		unmet(t, f.Runs[i].Name, f.Runs[i].Checks)
		if _, there := f.Runs[i].Values["ticks_total"]; there != (f.Runs[i].Name == "on") {
			t.Errorf("%s: a host ticks: %v", f.Runs[i].Name, there)
		}
	}
}
