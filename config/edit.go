package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"gswitch/section"
	"gswitch/units"
)

// Tables are the names that Set and Delete know.
var Tables = []string{"fdb", "routes", "neighbors", "acl"}

// Set adds an entry to a table of the switch, or replaces the one that it
// names. The entry is written as in the document; acl names the list where
// table is "acl".
func (s *Switch) Set(table, acl, entry string) error { return s.edit(table, acl, entry, false) }

// Add is Set that refuses an entry that is there already.
func (s *Switch) Add(table, acl, entry string) error { return s.edit(table, acl, entry, true) }

func (s *Switch) edit(table, acl, entry string, create bool) error {
	switch table {
	case "fdb":
		e, err := parseEntry[StaticMAC](entry)
		if err != nil {
			return err
		}
		return put(&s.FDB.Static, e, create, fmt.Sprintf("fdb: %s/%d", e.MAC, max(e.VLAN, 1)), func(o StaticMAC) bool { return o.MAC == e.MAC && max(o.VLAN, 1) == max(e.VLAN, 1) })
	case "routes":
		e, err := parseEntry[Route](entry)
		if err != nil {
			return err
		}
		return put(&s.Routes, e, create, fmt.Sprintf("routes: %s", e.Prefix), func(o Route) bool { return o.Prefix == e.Prefix })
	case "neighbors":
		e, err := parseEntry[Neighbor](entry)
		if err != nil {
			return err
		}
		return put(&s.Neighbors, e, create, fmt.Sprintf("neighbors: %s", e.Address), func(o Neighbor) bool { return o.Address == e.Address })
	case "acl":
		e, err := parseEntry[Rule](entry)
		if err != nil {
			return err
		}
		return s.setRule(acl, e, create)
	default:
		return unknownTable(table)
	}
}

func unknownTable(table string) error {
	if near := units.Nearest(table, Tables); near != "" {
		return fmt.Errorf("there is no table %q; did you mean %q?", table, near)
	}
	return fmt.Errorf("there is no table %q; there are %v", table, Tables)
}

func parseEntry[T any](text string) (T, error) {
	var e T
	err := section.Parse("", []byte(text), &e).Err()
	var errs section.Errors
	if errors.As(err, &errs) {
		// The entry has one line: where in it says nothing.
		for i := range errs {
			errs[i].Line, errs[i].Column = 0, 0
		}
	}
	return e, err
}

// put replaces the element of a list that is the same as e, or appends e.
// With create it refuses to replace; what names the element then.
func put[T any](list *[]T, e T, create bool, what string, same func(T) bool) error {
	switch i := slices.IndexFunc(*list, same); {
	case i < 0:
		*list = append(*list, e)
	case create:
		return fmt.Errorf("%s is there already; replace it with set", what)
	default:
		(*list)[i] = e
	}
	return nil
}

func (s *Switch) setRule(acl string, r Rule, create bool) error {
	if acl == "" {
		return fmt.Errorf("an access list must be named")
	}
	if s.ACLs == nil {
		s.ACLs = map[string][]Rule{}
	}
	rules := s.ACLs[acl]
	number(rules)
	if r.Seq == 0 && len(rules) > 0 {
		r.Seq = rules[len(rules)-1].Seq + 10
	}
	if err := put(&rules, r, create, fmt.Sprintf("acl %s: rule %d", acl, r.Seq), func(o Rule) bool { return o.Seq == r.Seq }); err != nil {
		return err
	}
	slices.SortStableFunc(rules, func(a, b Rule) int { return a.Seq - b.Seq })
	s.ACLs[acl] = rules
	return nil
}

// Delete removes an entry from a table of the switch. key names it: a MAC
// address (fdb, with /VLAN where that is not 1), a prefix, an address, or the
// number or name of a rule.
func (s *Switch) Delete(table, acl, key string) error {
	found := false
	switch table {
	case "fdb":
		s.FDB.Static = slices.DeleteFunc(s.FDB.Static, func(o StaticMAC) bool {
			hit := key == fmt.Sprintf("%s/%d", o.MAC, max(o.VLAN, 1)) || max(o.VLAN, 1) == 1 && sameMAC(key, o.MAC)
			found = found || hit
			return hit
		})
	case "routes":
		var p netip.Prefix
		if err := section.Set(&p, key); err != nil {
			return err
		}
		s.Routes = slices.DeleteFunc(s.Routes, func(o Route) bool { found = found || o.Prefix == p; return o.Prefix == p })
	case "neighbors":
		var a netip.Addr
		if err := section.Set(&a, key); err != nil {
			return err
		}
		s.Neighbors = slices.DeleteFunc(s.Neighbors, func(o Neighbor) bool { found = found || o.Address == a; return o.Address == a })
	case "acl":
		rules, has := s.ACLs[acl]
		if !has {
			return fmt.Errorf("there is no access list %q", acl)
		}
		number(rules)
		s.ACLs[acl] = slices.DeleteFunc(rules, func(o Rule) bool {
			hit := key == fmt.Sprint(o.Seq) || key == o.Name
			found = found || hit
			return hit
		})
	default:
		return unknownTable(table)
	}
	if !found {
		return fmt.Errorf("%s: there is no static entry %s", table, key)
	}
	return nil
}

func sameMAC(text string, m MAC) bool {
	o, err := ParseMAC(text)
	return err == nil && o == m
}

// Find returns the switch of a name, or the only one if name is empty.
func (c *Config) Find(name string) (*Switch, error) {
	if name == "" && len(c.Switches) == 1 {
		return &c.Switches[0], nil
	}
	names := make([]string, len(c.Switches))
	for i := range c.Switches {
		if names[i] = c.Switches[i].Name; names[i] == name {
			return &c.Switches[i], nil
		}
	}
	if name == "" {
		return nil, fmt.Errorf("there are several switches; name one of %v", names)
	}
	if near := units.Nearest(name, names); near != "" {
		return nil, fmt.Errorf("there is no switch %q; did you mean %q?", name, near)
	}
	return nil, fmt.Errorf("there is no switch %q; there are %v", name, names)
}

// FindPort returns the port of a name.
func (s *Switch) FindPort(name string) (*Port, error) {
	names := make([]string, len(s.Ports))
	for i := range s.Ports {
		if names[i] = s.Ports[i].name(); names[i] == name {
			return &s.Ports[i], nil
		}
	}
	if near := units.Nearest(name, names); near != "" {
		return nil, fmt.Errorf("switch %s has no port %q; did you mean %q?", s.Name, name, near)
	}
	return nil, fmt.Errorf("switch %s has no port %q; it has %v", s.Name, name, names)
}
