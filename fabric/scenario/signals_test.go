package scenario

import (
	"strings"
	"testing"
)

// Congestion control that only follows signals of switches is refused where
// none sends them in the class of the flows; what else it could be meant for
// gets a warning.
func TestWithoutSignal(t *testing.T) {
	const rocc = "switch: {rocc: {enabled: true}}\nhosts: {cc: rocc}\n"
	for _, c := range []struct{ text, want string }{
		{small + "hosts: {cc: rocc}\n", "s.yaml:9:13: hosts.cc: rocc needs fair rates of switches, and no switch gives any in class 0; set switch.rocc.enabled: true"},
		{small + "hosts: {cc: qcn}\n", "set switch.qcn.enabled: true"},
		{small + "switch: {int: {mode: none}}\nhosts: {cc: hpcc}\n", "s.yaml:10:13: hosts.cc: hpcc needs telemetry of each hop"},
		{small + "hosts: {overrides: [{hosts: [h1], cc: rocc}]}\n", "s.yaml:9:39: hosts.overrides[0].cc: rocc needs"},
		{strings.Replace(small, "kind: incast,", "kind: incast, class: 3,", 1) + rocc, "s.yaml:8:5: workload[0].cc: rocc needs fair rates of switches, and no switch gives any in class 3"},
		{strings.Replace(small, "kind: incast,", "kind: incast, cc: qcn,", 1) + rocc, "workload[0].cc: qcn needs"},
		{small + "switch: {rocc: {enabled: true, classes: [1]}}\nhosts: {cc: rocc}\n", "no switch gives any in class 0"},
		{small + "hosts: {cc: rocc}\nvariants: [{name: a}, {name: b, set: {switch.rocc.enabled: true}}]\n", "run \"a\":\ns.yaml:9:13: hosts.cc"},
	} {
		if _, err := Parse("s.yaml", []byte(c.text), Options{}); err == nil || !strings.Contains(err.Error(), c.want) || strings.HasPrefix(err.Error(), `run ""`) {
			t.Errorf("%q\n gave %v\n want %s", strings.TrimPrefix(c.text, head), err, c.want)
		}
	}
	for _, text := range []string{
		small + rocc,
		small + "hosts: {cc: rocc}\nvariants: [{name: b, set: {switch.rocc.enabled: true}}]\n",
		small + "switch: {qcn: {enabled: true, classes: [0, 1]}}\nhosts: {cc: qcn}\n",
		small + "hosts: {cc: hpcc}\n",
		small + "hosts: {cc: dctcp}\nswitch: {ecn: {kmin: 1KB, kmax: 2KB}}\n",
		small + "hosts: {cc: dcqcn-original}\nswitch: {ecn: {pi: {ref: 1KB, a: 0.00001, b: 0.000001, period: 1us}}}\n",
		small + "hosts: {cc: dctcp, mark_above: 64KiB}\n",
		small + "hosts: {cc: timely}\n",
	} {
		if w := parse(t, text, Options{}).Runs[0].Doc.Warnings(); len(w) > 0 {
			t.Errorf("%q: %v", strings.TrimPrefix(text, head), w)
		}
	}
	w := parse(t, small+"hosts: {cc: dcqcn}\n", Options{}).Runs[0].Doc.Warnings()
	if len(w) != 1 || w[0] != "hosts.cc: dcqcn needs CNPs, or echoed marks, and no switch gives any in class 0; set switch.ecn.kmin and switch.ecn.kmax" {
		t.Error(w)
	}
}

// Notices of congestion points must not wait behind the congestion that they report.
func TestNoticesPass(t *testing.T) {
	for _, point := range []string{"rocc", "qcn"} {
		on := "switch: {" + point + ": {enabled: true}}\n"
		for _, c := range []struct{ text, want string }{
			{on + "pfc: {enabled: true, classes: [0, 7]}\n", "s.yaml:10:35: pfc.classes[1]: the notices of"},
			{on + "pfc: {enabled: true}\nhosts: {class: 7}\n", "s.yaml:11:16: hosts.class: the notices of"},
		} {
			if _, err := Parse("s.yaml", []byte(small+c.text), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q\n gave %v\n want %s", c.text, err, c.want)
			}
		}
		for _, text := range []string{on + "pfc: {enabled: true, classes: [0, 6]}\n", on + "pfc: {classes: [0, 7]}\n", on + "hosts: {class: 7}\n", on + "pfc: {enabled: true, classes: [0]}\nhosts: {class: 7}\n"} {
			parse(t, small+text, Options{})
		}
	}
	parse(t, small+"pfc: {enabled: true, classes: [0, 7]}\n", Options{})
}

// Of a key and the one that there was before only one may be written.
func TestOldKeyOfOccupancy(t *testing.T) {
	for _, c := range []struct {
		keys, want, port string
	}{
		{"{whole_port: true}", "", "port"},
		{"{occupancy: queue}", "", "queue"},
		{"{whole_port: true, occupancy: queue}", "s.yaml:9:28: switch.int.whole_port: stands beside occupancy; leave this one out", ""},
		{"{whole_port: false, occupancy: port}", "switch.int.whole_port: stands beside", ""},
	} {
		s, err := Parse("s.yaml", []byte(small+"switch: {int: "+c.keys+"}\n"), Options{})
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.keys, err, c.want)
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.keys, err)
		case c.want == "" && s.Runs[0].Doc.Switch.INT.Record().Occupancy != c.port:
			t.Errorf("%s: %+v", c.keys, s.Runs[0].Doc.Switch.INT.Record())
		}
	}
}
