package config

import (
	"fmt"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/options"
	"gswitch/section"
	"gswitch/transport"
)

// everyUnit are the options of a scheme that has one of each unit.
type everyUnit struct {
	number, count, rate, bytes float64
	time                       frame.Time
	flag                       bool
	choice                     string
}

// Two schemes of another module share names of options, with other values.
var _, _ = otherScheme("units", transport.OwnCodes,
	options.Param{Name: "x_number", Unit: options.Number, Default: "0.5", Max: 1e7},
	options.Param{Name: "x_count", Unit: options.Count, Default: "5", Min: 1},
	options.Param{Name: "x_rate", Unit: options.Rate, Default: "1Gbps"},
	options.Param{Name: "x_bytes", Unit: options.Bytes, Default: "1KB", Max: 1e9},
	options.Param{Name: "x_time", Unit: options.Time, Default: "1us"},
	options.Param{Name: "x_flag", Unit: options.Flag, Default: "false"},
	options.Param{Name: "x_choice", Unit: options.Choice, Default: "a", Choices: []string{"a", "b"}},
	options.Param{Name: "x_shared", Unit: options.Count, Default: "3", Min: 2, Max: 4},
), otherScheme("units-too", transport.OwnCodes+1,
	options.Param{Name: "x_shared", Unit: options.Count, Default: "3", Min: 1, Max: 9},
	options.Param{Name: "x_bytes", Unit: options.Bytes, Default: "1KB", Max: 1e6},
	options.Param{Name: "x_number", Unit: options.Number, Default: "0.5"},
	options.Param{Name: "x_choice", Unit: options.Choice, Default: "c", Choices: []string{"b", "c"}},
)

func otherScheme(name string, code uint8, params ...options.Param) *transport.Kind {
	k := *transport.GoBackN
	k.Name, k.Code, k.Params = name, code, params
	for i := range k.Params {
		k.Params[i].Doc, k.Params[i].Source = "an option", "ours"
	}
	k.Set = func(*transport.Config, *options.Values) {}
	if name == "units" {
		k.Set = func(c *transport.Config, v *options.Values) {
			c.Own = &transport.Own{Options: everyUnit{v.Float("x_number"), v.Float("x_count"), v.Float("x_rate"), v.Float("x_bytes"), v.Time("x_time"), v.Flag("x_flag"), v.Choice("x_choice")}}
		}
	}
	return transport.Register(k)
}

// An option of any unit is a key of recovery_options, and comes to its scheme as it is
// written.
func TestRecoveryOptionsOfEveryUnit(t *testing.T) {
	for text, want := range map[string]everyUnit{
		"{}": {.5, 5, 1e9, 1000, 1000, false, "a"},
		"{x_number: 0.00001, x_count: 3000000000, x_rate: 1.234567891Gbps, x_bytes: 64KiB, x_time: 2.5ms, x_flag: true, x_choice: b}": {1e-5, 3e9, 1234567891, 65536, 2_500_000, true, "b"},
		"{x_number: 3000000, x_rate: unlimited, x_bytes: 0B, x_time: 500h}":                                                           {3e6, 5, 0, 0, 500 * 3600 * frame.Second, false, "a"},
	} {
		c, err := ParseHosts("h.yaml", []byte(shortHost+"recovery: units\nrecovery_options: "+text+"\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if own := c.Hosts[0].Transport().Own; own == nil || own.Options != want {
			t.Errorf("%s: %+v, want %+v", text, own, want)
		}
	}
}

// A key takes what any scheme with an option of its name does; the scheme in use refuses
// what only others take.
func TestRecoveryOptionsOfOneName(t *testing.T) {
	for _, c := range []struct{ scheme, options, want string }{
		{"units-too", "x_shared: 1", ""},
		{"units-too", "x_shared: 9", ""},
		{"units-too", "x_shared: 10", "x_shared: 10 is not between 1 and 9"},
		{"units", "x_shared: 4", ""},
		{"units", "x_shared: 9", "x_shared: 9 is out of range; it must be from 2 to 4"},
		{"units", "x_bytes: 100MB", ""},
		{"units", "x_bytes: 2000000001B", "x_bytes: 2000000001B is not between 0B and 1GB"},
		{"units-too", "x_bytes: 100MB", "x_bytes: 100MB is out of range"},
		{"units-too", "x_number: 20000000", ""},
		{"units", "x_number: 20000000", "x_number: 20000000 is out of range"},
		{"units", "x_count: 0", "x_count: 0 is out of range; it must be at least 1"},
		{"units-too", "x_choice: c", ""},
		{"units", "x_choice: c", `x_choice: "c" is not one of a, b`},
		{"units", "x_choice: d", `x_choice: "d" is not one of a, b, c`},
	} {
		_, err := ParseHosts("h.yaml", fmt.Appendf(nil, "%srecovery: %s\nrecovery_options: {%s}\n", shortHost, c.scheme, c.options))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: {%s}: %v, want %q", c.scheme, c.options, err, c.want)
		}
	}
	// The schema says the same.
	for _, k := range (recoveryOptions{}).Kinds() {
		want := map[string]string{"x_shared": "1,9", "x_bytes": "0,1000000000", "x_number": "", "x_count": ""}
		if r, ours := want[k.Key]; ours && k.Tag.Get("range") != r {
			t.Errorf("%s has the range %q, want %q", k.Key, k.Tag.Get("range"), r)
		}
	}
	section.Schema("", new(Host)) // writes JSON, or panics
}
