package config

import (
	"strings"
	"testing"

	"gswitch/section"
)

func TestEdit(t *testing.T) {
	c, err := Parse("", []byte("version: 1\nswitches:\n  - {name: s1, ports: [{interface: e1, address: [10.0.0.1/24]}, {interface: e2}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	before := c.Clone()
	s := &c.Switches[0]
	for _, e := range []struct{ table, acl, entry, err string }{
		{"routes", "", "{prefix: 10.1.0.0/16, via: 10.0.0.2}", ""},
		{"routes", "", "{prefix: 10.1.0.0/16, via: 10.0.0.3}", ""},
		{"routes", "", "{prefix: 10.1.0.0/16, vai: 10.0.0.3}", `vai: unknown key; did you mean "via"?`},
		{"neighbors", "", "{address: 10.0.0.2, mac: 02:00:00:00:00:02}", ""},
		{"fdb", "", "{mac: 02:00:00:00:00:03, port: e2}", ""},
		{"fdb", "", "{mac: 02:00:00:00:00:03, vlan: 1, port: e1}", ""},
		{"acl", "a", "{action: drop, match: {dst: 10.9.0.0/16}}", ""},
		{"acl", "a", "{seq: 15, name: x}", ""},
		{"acl", "a", "{seq: 5}", ""},
		{"acl", "", "{seq: 5}", "an access list must be named"},
		{"route", "", "{}", `there is no table "route"; did you mean "routes"?`},
	} {
		err := s.Set(e.table, e.acl, e.entry)
		if got := text(err); got != e.err {
			t.Errorf("%s %s: %q, want %q", e.table, e.entry, got, e.err)
		}
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	want := `+ switches[s1].acls.a: [{seq: 5, action: permit}, {seq: 10, match: {dst: 10.9.0.0/16}, action: drop}, {name: x, seq: 15, action: permit}]
+ switches[s1].fdb.static[02:00:00:00:00:03/1]: {mac: 02:00:00:00:00:03, vlan: 1, port: e1}
+ switches[s1].routes[10.1.0.0/16]: {prefix: 10.1.0.0/16, via: 10.0.0.3}
+ switches[s1].neighbors[10.0.0.2]: {address: 10.0.0.2, mac: 02:00:00:00:00:02}`
	if got := lines(Diff(before, c)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	for _, e := range []struct{ table, acl, key, err string }{
		{"routes", "", "10.1.0.0/16", ""},
		{"routes", "", "10.1.0.0/16", "routes: there is no static entry 10.1.0.0/16"},
		{"routes", "", "10.1.0.0", `"10.1.0.0" is not an address with prefix length; write 10.0.0.0/24 or fd00::/64`},
		{"neighbors", "", "10.0.0.2", ""},
		{"fdb", "", "02-00-00-00-00-03", ""},
		{"acl", "b", "5", `there is no access list "b"`},
		{"acl", "a", "x", ""},
		{"acl", "a", "5", ""},
		{"acl", "a", "10", ""},
	} {
		if got := text(s.Delete(e.table, e.acl, e.key)); got != e.err {
			t.Errorf("delete %s %s: %q, want %q", e.table, e.key, got, e.err)
		}
	}
	if got := lines(Diff(before, c)); got != "+ switches[s1].acls.a: []" {
		t.Errorf("after deleting everything: %s", got)
	}
	if _, err := c.Find("s2"); text(err) != `there is no switch "s2"; did you mean "s1"?` {
		t.Error(err)
	}
	if p, err := s.FindPort("e2"); err != nil || p.Interface != "e2" {
		t.Error(p, err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func lines(changes []section.Change) string {
	var b []string
	for _, c := range changes {
		b = append(b, c.String())
	}
	return strings.Join(b, "\n")
}
