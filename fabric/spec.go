package fabric

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"gswitch/section"
	"gswitch/units"
	"gswitch/wholefile"
)

// Spec is the topology section of a document, as written.
type Spec struct {
	Version  int              `yaml:"version" range:"1,1" doc:"Version of this format: 1."`
	Name     string           `yaml:"name" doc:"Name of the fabric. That of the file or the generator if left out."`
	Mode     string           `yaml:"mode" enum:"l2,l3" doc:"l2: switches bridge, loops are refused. l3: switches route. l2 without loops, else l3, if left out."`
	Generate string           `yaml:"generate" doc:"Generator, such as leaf-spine(2, 4, 2), in place of hosts, switches and links."`
	Hosts    []string         `yaml:"hosts" doc:"Names of the hosts."`
	Switches []string         `yaml:"switches" doc:"Names of the switches."`
	Links    []LinkSpec       `yaml:"links" doc:"The links. A host has exactly one."`
	Classes  map[string]Class `yaml:"classes" doc:"Link classes. host and fabric are those of links with and without a host."`
	Change   []LinkChange     `yaml:"change" doc:"Links that differ, or are not there, one after the other."`
}

// LinkSpec is one link, as written.
type LinkSpec struct {
	A     string          `yaml:"a" need:"yes" doc:"One end."`
	B     string          `yaml:"b" need:"yes" doc:"The other end."`
	Class string          `yaml:"class" doc:"Link class. host or fabric, whichever fits, if left out."`
	Rate  *units.Rate     `yaml:"rate" doc:"Overrides the class."`
	Delay *units.Duration `yaml:"delay" doc:"Overrides the class."`
	MTU   *int            `yaml:"mtu" range:"576,9000" doc:"Overrides the class."`
}

// Class holds what links have in common.
type Class struct {
	Rate  units.Rate     `yaml:"rate" doc:"Emulated speed, each way. unlimited if left out."`
	Delay units.Duration `yaml:"delay" doc:"Propagation delay, each way. None if left out."`
	MTU   int            `yaml:"mtu" range:"576,9000" doc:"Largest packet. 1500 if left out."`
}

// Load makes a topology of arg: the name of a file, or a generator.
// Everything in override that is not zero replaces what arg says; its classes
// replace those of the same name.
func Load(arg string, override Spec) (*Topology, error) {
	data, err := wholefile.Read(arg, section.MaxDocument)
	if err == nil {
		return parse(arg, data, override)
	}
	looksLikeFile := strings.ContainsRune(arg, '/') || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml")
	if !errors.Is(err, os.ErrNotExist) || looksLikeFile {
		return nil, fmt.Errorf("cannot read the topology: %w", err)
	}
	override.Generate = arg
	return override.Build()
}

// Parse decodes a topology file. file is the name that errors carry.
func Parse(file string, data []byte) (*Topology, error) { return parse(file, data, Spec{}) }

func parse(file string, data []byte, override Spec) (*Topology, error) {
	var s Spec
	sec := section.Parse(file, data, &s)
	if sec.Err() == nil && s.Version == 0 {
		sec.Fail("version", "is missing; write version: 1")
	}
	if s.Name == "" {
		base := filepath.Base(file)
		s.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return s.replace(override).build(sec)
}

// ParseNode decodes a topology section inside another document.
func ParseNode(file string, n *yaml.Node) (*Topology, error) {
	var s Spec
	sec := section.Decode(file, n, &s)
	return s.build(sec)
}

// Build makes the topology that s describes.
func (s Spec) Build() (*Topology, error) {
	if s.Name == "" {
		s.Name, _, _ = strings.Cut(s.Generate, "(")
		s.Name, _, _ = strings.Cut(s.Name, ":")
		s.Name = strings.TrimSpace(s.Name)
	}
	return s.build(new(section.Section))
}

func (s Spec) replace(o Spec) Spec {
	if o.Name != "" {
		s.Name = o.Name
	}
	if o.Mode != "" {
		s.Mode = o.Mode
	}
	for name, c := range o.Classes {
		if s.Classes == nil {
			s.Classes = map[string]Class{}
		}
		s.Classes[name] = c
	}
	return s
}

// build turns what is written into a checked Topology; sec knows where each
// key stands and collects what is wrong.
func (s Spec) build(sec *section.Section) (*Topology, error) {
	if err := sec.Err(); err != nil {
		return nil, err
	}
	t := &Topology{Name: s.Name, Mode: Mode(s.Mode)}
	if s.Mode != "" && t.Mode != L2 && t.Mode != L3 {
		sec.Fail("mode", "%q is not one of l2, l3", s.Mode)
	}
	if err := CheckName("fabric", s.Name); err != nil {
		sec.Fail("name", "%v", err)
	}
	switch {
	case s.Generate != "" && len(s.Hosts)+len(s.Switches)+len(s.Links) > 0:
		sec.Fail("generate", "stands beside hosts, switches or links; use one or the other")
	case s.Generate != "":
		if err := generate(t, s.Generate); err != nil {
			sec.Fail("generate", "%v", err)
		}
	case len(s.Hosts)+len(s.Switches)+len(s.Links) == 0:
		sec.Fail("", "describes no network; give generate, or hosts, switches and links")
	default:
		s.explicit(t, sec)
	}
	if err := sec.Err(); err != nil {
		return nil, err
	}
	s.applyClasses(t, sec)
	if len(s.Change) > 0 {
		s.applyChanges(t, sec)
	}
	if err := sec.Err(); err != nil {
		return nil, err
	}
	if err := t.finish(); err != nil {
		sec.Fail(s.keyOf(err), "%v", err)
		return nil, sec.Err()
	}
	return t, nil
}

func (s Spec) explicit(t *Topology, sec *section.Section) {
	index := map[string]int{}
	add := func(k Kind, list string, names []string) {
		for i, name := range names {
			key := fmt.Sprintf("%s[%d]", list, i)
			if err := CheckName(k.String(), name); err != nil {
				sec.Fail(key, "%v", err)
			}
			if _, twice := index[name]; twice {
				sec.Fail(key, "the name %q is given to two nodes", name)
			}
			index[name] = t.addNode(k, name)
		}
	}
	add(Host, "hosts", s.Hosts)
	add(Switch, "switches", s.Switches)
	for i, l := range s.Links {
		a, okA := index[l.A]
		b, okB := index[l.B]
		if !okA {
			sec.Fail(fmt.Sprintf("links[%d].a", i), "%q is neither under hosts nor under switches", l.A)
		}
		if !okB {
			sec.Fail(fmt.Sprintf("links[%d].b", i), "%q is neither under hosts nor under switches", l.B)
		}
		if okA && okB {
			t.addLink(a, b, Link{Class: l.Class})
		}
	}
}

// applyClasses gives the links the values of their classes, and then what the
// link itself says.
func (s Spec) applyClasses(t *Topology, sec *section.Section) {
	used := map[string]bool{ClassHost: true, ClassFabric: true}
	for i := range t.Links {
		l := &t.Links[i]
		c, ok := s.Classes[l.Class]
		if !ok && l.Class != ClassHost && l.Class != ClassFabric {
			sec.Fail(fmt.Sprintf("links[%d].class", i), "%q is not under classes", l.Class)
		}
		used[l.Class] = true
		own := *l // of a generator that knows the network
		l.Rate, l.Delay, l.MTU = uint64(c.Rate), time.Duration(c.Delay), c.MTU
		if l.MTU == 0 {
			l.MTU = DefaultMTU
		}
		if s.Generate != "" {
			if own.Rate != 0 {
				l.Rate, l.Delay = own.Rate, own.Delay
			}
			continue
		}
		w := s.Links[i]
		if w.Rate != nil {
			l.Rate = uint64(*w.Rate)
		}
		if w.Delay != nil {
			l.Delay = time.Duration(*w.Delay)
		}
		if w.MTU != nil {
			l.MTU = *w.MTU
		}
	}
	for name := range s.Classes {
		if !used[name] {
			sec.Fail("classes."+name, "no link is of this class; remove it or name it at a link")
		}
	}
}

// keyOf returns the key that an error of a finished topology is about.
func (s Spec) keyOf(err error) string {
	var f *fault
	if s.Generate != "" || !errors.As(err, &f) {
		if s.Generate != "" {
			return "generate"
		}
		return ""
	}
	switch {
	case f.link >= 0:
		return fmt.Sprintf("links[%d]", f.link)
	case f.node >= len(s.Hosts):
		return fmt.Sprintf("switches[%d]", f.node-len(s.Hosts))
	case f.node >= 0:
		return fmt.Sprintf("hosts[%d]", f.node)
	}
	return ""
}
