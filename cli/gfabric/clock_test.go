package gfabric

import (
	"bytes"
	"strings"
	"testing"
)

func TestClockPlan(t *testing.T) {
	f := clockFlags{root: "spine1", domains: []string{"supply=spine1,spine2"}}
	p, err := f.plan("leaf-spine(4, 6, 2)")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.write(&out); err != nil {
		t.Fatal(err)
	}
	rows := p.rows()
	if len(rows) != 22 || rows[0].Node != "spine1" || rows[0].Role != "root" || strings.Count(out.String(), "\n") != 23 {
		t.Errorf("%d rows:\n%s", len(rows), &out)
	}
	backups := 0
	for _, r := range rows[1:] {
		if r.Role == "backup root" {
			backups++
		}
		host := strings.HasPrefix(r.Node, "h")
		if r.Parent == "-" || host != (r.Second == "-") || r.Hops < 1 || r.MostHops < r.Hops {
			t.Errorf("%+v", r)
		}
	}
	if backups != 1 {
		t.Errorf("%d backup roots", backups)
	}
}

func TestClockPlanRefuses(t *testing.T) {
	for _, c := range []struct {
		f    clockFlags
		arg  string
		want string
	}{
		{clockFlags{root: "x"}, "leaf-spine(2, 2, 1)", `no node "x"`},
		{clockFlags{domains: []string{"supply"}}, "leaf-spine(2, 2, 1)", "name=node"},
		{clockFlags{domains: []string{"a=s9"}}, "leaf-spine(2, 2, 1)", `no node "s9"`},
		{clockFlags{}, "line(3, 1)", "no plan with s1 as its root: "},
		{clockFlags{}, "nothing(3)", "nothing"},
	} {
		if _, err := c.f.plan(c.arg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v %s: %v", c.f, c.arg, err)
		}
	}
}
