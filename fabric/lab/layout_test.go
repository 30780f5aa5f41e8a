package lab

import (
	"bytes"
	"fmt"
	"testing"

	"gswitch/config"
	"gswitch/fabric"
)

func TestLayoutNames(t *testing.T) {
	l := layoutOf(t, "names", "leaf-spine(spines=12, leaves=11, hosts=2)", fabric.L3, Options{Each: true})
	seen := map[string]bool{}
	for _, v := range l.Veths {
		for _, d := range []Dev{v.A, v.B} {
			key := fmt.Sprint(d.Namespace, " ", d.Name)
			if seen[key] || len(d.Name) > maxDevName {
				t.Errorf("device %s is there twice, or its name is too long", key)
			}
			seen[key] = true
		}
	}
	long := "version: 1\nname: fabtest-long\nhosts: [a-very-long-host-name-1, a-very-long-host-name-2]\nswitches: [a-very-long-switch-name]\nlinks:\n" +
		"  - {a: a-very-long-host-name-1, b: a-very-long-switch-name}\n  - {a: a-very-long-host-name-2, b: a-very-long-switch-name}\n"
	topo, err := fabric.Parse("long.yaml", []byte(long))
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := fabric.NewPlan(topo)
	l, err = NewLayout(plan, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Veths[0].B.Name != "n2p0" || l.Veths[1].B.Name != "n2p1" {
		t.Errorf("devices %s, %s", l.Veths[0].B.Name, l.Veths[1].B.Name)
	}
}

// Every generator in every way gives configurations that gswitch takes.
func TestConfigsAreValid(t *testing.T) {
	for _, expr := range []string{"star(4)", "dumbbell(2, 2)", "leaf-spine(2, 4, 2)", "fat-tree(4)", "ring(4)", "line(3)"} {
		for _, each := range []bool{false, true} {
			for _, mode := range []fabric.Mode{"", fabric.L3} {
				l := layoutOf(t, "valid", expr, mode, Options{Each: each, Poll: "sleep", CPUs: []int{0, 1}})
				var b bytes.Buffer
				if err := l.WriteConfigs(&b); err != nil {
					t.Error(err)
				}
				for _, p := range l.Processes {
					if _, err := config.Parse(p.File, p.Config.YAML()); err != nil {
						t.Errorf("%s, each %v, mode %s: %v", expr, each, mode, err)
					}
				}
			}
		}
	}
}
