package scenario

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gswitch/config"
	"gswitch/fabric"
	"gswitch/section"
	"gswitch/wholefile"
)

// Scenario is a checked document and the runs that it asks for.
type Scenario struct {
	File   string
	Doc    *Document // before variants and sweeps set anything
	Runs   []Run
	Expect []*Expectation
}

// Run is one run of a scenario.
type Run struct {
	Name     string // unique: the variant and the values of the sweep
	Title    string // the same, for reports
	Variant  string // "" without variants
	Point    []Setting
	Seed     uint64
	Doc      *Document // with everything set
	Topology *fabric.Topology

	source *yaml.Node
}

// Setting is a value that a sweep sets for a run.
type Setting struct {
	Key   string // as names of runs have it: the end of the path
	Path  string
	Value string
}

// Options are the settings of the command line.
type Options struct {
	Short bool     // apply the section short
	Set   []string // path=value, overriding the document and its variants; a sweep of the same key takes precedence
	Seeds []uint64 // replace those of the document
	First uint64   // if not 0 and without Seeds: as many seeds as the document has, starting with this one
	Only  []string // run only these variants, or the runs with these names
	// Confined rejects files that are outside the directory of the scenario, before they
	// are opened.
	Confined bool
}

// nameRule is the syntax of a scenario's name.
var nameRule = regexp.MustCompile(`^[\pL\pN_][\pL\pN_. +()-]{0,199}$`)

// maxRuns bounds the number of runs of a sweep.
const maxRuns = 10_000

// Load reads and checks a scenario file.
func Load(file string, o Options) (*Scenario, error) {
	data, err := wholefile.Read(file, section.MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("cannot read the scenario: %w", err)
	}
	return Parse(file, data, o)
}

// Parse checks a scenario. file is the name for errors; other files are relative to its
// directory.
func Parse(file string, data []byte, o Options) (*Scenario, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%s: the document is empty; a scenario has at least version, topology, workload and duration", file)
	}
	var doc Document
	if err := section.Parse(file, data, &doc).Err(); err != nil {
		return nil, err
	}
	root, err := parseNode(file, data)
	if err != nil {
		return nil, err
	}
	if o.Short {
		if err := setAll(file, root, "short", child(root, "short")); err != nil {
			return nil, err
		}
	}
	s := &Scenario{File: file}
	written := clone(root)
	if err := s.base(root, written, o); err != nil {
		return nil, err
	}
	if err := s.expand(root, written, o); err != nil {
		return nil, err
	}
	if err := s.expectations(root); err != nil {
		return nil, err
	}
	if err := s.only(o.Only); err != nil {
		return nil, err
	}
	return s, nil
}

// base applies the settings of the command line to root, of which written is the
// original, and decodes the document by itself. A setting may be valid only in
// combination with a variant, such as an option of the congestion control that the
// variant names. Decoding the runs then shows whether it is.
func (s *Scenario) base(root, written *yaml.Node, o Options) error {
	if err := setTexts(root, o.Set); err != nil {
		return err
	}
	doc, _, err := decode(s.File, root, o, false)
	if err != nil && len(o.Set) > 0 && child(root, "variants") != nil {
		if d, _, wrong := decode(s.File, written, o, false); wrong == nil && len(d.Variants) > 0 {
			doc, err = d, nil
			*root = *clone(written)
		}
	}
	s.Doc = doc
	return err
}

func parseNode(file string, data []byte) (*yaml.Node, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	left := maxNodes
	root, err := unfold(top.Content[0], &left)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return root, nil
}

// setAll sets every key of a mapping of paths.
func setAll(file string, root *yaml.Node, where string, set *yaml.Node) error {
	if set == nil || set.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(set.Content); i += 2 {
		key := set.Content[i]
		if err := setPath(root, key.Value, set.Content[i+1], key); err != nil {
			return section.Errors{{File: file, Line: key.Line, Column: key.Column, Key: where, Problem: err.Error()}}
		}
	}
	return nil
}

// setTexts applies the settings of the command line. Options of one congestion control do
// not apply to another: if hosts.cc changes, the document's options are dropped and only
// those of the command line remain.
func setTexts(root *yaml.Node, set []string) error {
	hosts := child(root, "hosts")
	for _, text := range set {
		path, value, _ := strings.Cut(text, "=")
		if path != "hosts.cc" || hosts == nil || hosts.Kind != yaml.MappingNode {
			continue
		}
		was := "none"
		if cc := child(hosts, "cc"); cc != nil {
			was = cc.Value
		}
		if strings.Trim(value, " \"'") != was {
			remove(hosts, "params")
		}
	}
	for _, text := range set {
		if err := setText(root, text); err != nil {
			return err
		}
	}
	return nil
}

// setText applies one setting of the command line: path=value, with the value in YAML.
func setText(root *yaml.Node, text string) error {
	path, value, ok := strings.Cut(text, "=")
	var v yaml.Node
	if ok && path == "sweep" && strings.TrimSpace(value) == "" {
		return fmt.Errorf("--set %q: to sweep nothing, --set 'sweep={}'; where expectations pin points of the sweep, %s", text, judgeNothing)
	}
	if err := yaml.Unmarshal([]byte(value), &v); !ok || err != nil || len(v.Content) == 0 {
		return fmt.Errorf("--set %q: write path=value, such as hosts.cc=dcqcn", text)
	}
	left := maxNodes
	node, err := unfold(v.Content[0], &left)
	if err == nil {
		clearLines(node)
		err = setPath(root, path, node, &yaml.Node{})
	}
	if err != nil {
		return fmt.Errorf("--set %q: %w", text, err)
	}
	return nil
}

// SetIn sets keys (path=value) of a document of any kind and returns it in YAML. file is
// the name for errors.
func SetIn(file string, data []byte, set []string) ([]byte, error) {
	root, err := parseNode(file, data)
	if err != nil {
		return nil, err
	}
	for _, text := range set {
		if err := setText(root, text); err != nil {
			return nil, err
		}
	}
	return yaml.Marshal(root)
}

// clearLines removes positions, so that errors about n carry no line.
func clearLines(n *yaml.Node) {
	n.Line, n.Column = 0, 0
	for _, e := range n.Content {
		clearLines(e)
	}
}

// decode decodes and checks one document and fills in defaults. run says that it is the
// final document of a run, to which no variant adds anything.
func decode(file string, root *yaml.Node, o Options, run bool) (*Document, *fabric.Topology, error) {
	doc := new(Document)
	sec := section.Decode(file, root, doc)
	if err := sec.Err(); err != nil {
		return nil, nil, err
	}
	section.Fill(doc)
	if o.Confined {
		if err := doc.confined(filepath.Dir(file)); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	for key, p := range map[string]*config.Policy{"switch.policy": &doc.Switch.Policy, "switch.shadow": &doc.Switch.Shadow, "hosts.policy": &doc.Hosts.Policy} {
		if err := p.Read(file, readPolicy); err != nil {
			sec.Fail(key, "%s", err)
			return nil, nil, sec.Err()
		}
	}
	if doc.Name == "" {
		base := filepath.Base(file)
		doc.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if !nameRule.MatchString(doc.Name) || strings.Contains(doc.Name, "..") {
		sec.Fail("name", "%q is no name: results lie in a directory of it; letters, digits, spaces, dots, dashes and underscores are possible", doc.Name)
		return nil, nil, sec.Err()
	}
	if len(o.Seeds) > 0 {
		doc.Seeds = o.Seeds
	}
	if len(doc.Seeds) == 0 {
		doc.Seeds = []uint64{1}
	}
	if o.First > 0 && len(o.Seeds) == 0 {
		for i := range doc.Seeds {
			doc.Seeds[i] = o.First + uint64(i)
		}
	}
	node := child(root, "topology")
	if child(node, "name") == nil && child(node, "generate") == nil {
		// A network that is defined in place gets the name of the scenario.
		if fabric.CheckName("fabric", doc.Name) != nil {
			return nil, nil, section.Errors{{File: file, Line: node.Line, Column: node.Column, Key: "topology.name", Problem: "is missing"}}
		}
		node = clone(node)
		if err := setPath(node, "name", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: doc.Name}, node); err != nil {
			return nil, nil, err
		}
	} else if child(node, "name") == nil {
		name, _, _ := strings.Cut(strings.NewReplacer(":", "(", " ", "").Replace(child(node, "generate").Value), "(")
		node = clone(node)
		if err := setPath(node, "name", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, node); err != nil {
			return nil, nil, err
		}
	}
	topology, err := fabric.ParseNode(file, node)
	if err != nil {
		return nil, nil, err
	}
	v := validator{doc, topology, sec, file}
	v.all()
	if run {
		v.signals()
	}
	return doc, topology, sec.Err()
}

// expand creates the runs: every variant with every combination of the sweep and every
// seed. Variants change the written document, and the command line changes the result of
// that. A setting need not be valid for runs that were not selected.
func (s *Scenario) expand(root, written *yaml.Node, o Options) error {
	points, err := s.points(child(root, "sweep"))
	if err != nil {
		return err
	}
	variants := child(root, "variants")
	n := 1
	if variants != nil && len(variants.Content) > 0 {
		n = len(variants.Content)
	}
	if total := n * len(points) * len(s.Doc.Seeds); total > maxRuns {
		return fmt.Errorf("%s: variants, sweep and seeds ask for %d runs; at most %d are allowed", s.File, total, maxRuns)
	}
	for i := range n {
		for _, p := range points {
			name, title := []string{}, []string{}
			variant, from := "", root
			var change *yaml.Node
			if variants != nil && len(variants.Content) > 0 {
				v := s.Doc.Variants[i]
				variant, from, change = v.Name, written, child(variants.Content[i], "set")
				name, title = append(name, v.Name), append(title, cmp.Or(v.Title, v.Name))
			}
			var settings []Setting
			for _, q := range p {
				name, title = append(name, q.key+"="+label(q.value)), append(title, q.key+" "+label(q.value))
				settings = append(settings, Setting{q.key, q.path, label(q.value)})
			}
			run := func(set []string) (*yaml.Node, *Document, *fabric.Topology, error) {
				node := clone(from)
				if err := setAll(s.File, node, fmt.Sprintf("variants[%d].set", i), change); err != nil {
					return nil, nil, nil, err
				}
				if err := setTexts(node, set); err != nil {
					return nil, nil, nil, err
				}
				for _, q := range p {
					if err := setPath(node, q.path, q.value, q.at); err != nil {
						return nil, nil, nil, section.Errors{{File: s.File, Line: q.at.Line, Column: q.at.Column, Key: "sweep", Problem: err.Error()}}
					}
				}
				doc, topology, err := decode(s.File, node, o, true)
				if err != nil && len(name) > 0 { // a single run has no name
					err = fmt.Errorf("run %q:\n%w", strings.Join(name, ", "), err)
				}
				return node, doc, topology, err
			}
			node, doc, topology, err := run(o.Set)
			chosen := len(o.Only) == 0 || slices.Contains(o.Only, variant) || slices.Contains(o.Only, strings.Join(name, ", "))
			if err != nil && !chosen {
				node, doc, topology, err = run(nil)
			}
			if err != nil {
				return err
			}
			for _, seed := range doc.Seeds {
				r := Run{Name: strings.Join(name, ", "), Title: strings.Join(title, ", "), Variant: variant, Point: settings, Seed: seed, Doc: doc, Topology: topology, source: node}
				if r.Name == "" {
					r.Name, r.Title = doc.Name, cmp.Or(doc.Title, doc.Name)
				}
				s.Runs = append(s.Runs, r)
			}
		}
	}
	return nil
}

// setting is one value of a swept key.
type setting struct {
	key, path string
	value, at *yaml.Node
}

// points returns all combinations of the values of the sweep; the last key changes
// fastest.
func (s *Scenario) points(sweep *yaml.Node) ([][]setting, error) {
	points := [][]setting{nil}
	if sweep == nil {
		return points, nil
	}
	keys := sweepKeys(sweep)
	for i := 0; i+1 < len(sweep.Content); i += 2 {
		at, values := sweep.Content[i], sweep.Content[i+1]
		if len(values.Content) == 0 {
			return nil, section.Errors{{File: s.File, Line: at.Line, Column: at.Column, Key: "sweep." + at.Value, Problem: "has no values; give it some or remove it"}}
		}
		if len(points)*len(values.Content) > maxRuns {
			return nil, fmt.Errorf("%s: the sweep asks for more than %d runs", s.File, maxRuns)
		}
		var next [][]setting
		for _, p := range points {
			for _, v := range values.Content {
				next = append(next, append(slices.Clone(p), setting{keys[i/2], at.Value, v, at}))
			}
		}
		points = next
	}
	return points, nil
}

// sweepKeys names the swept paths by their ends, as short as is unambiguous.
func sweepKeys(sweep *yaml.Node) []string {
	var paths [][]string
	for i := 0; i+1 < len(sweep.Content); i += 2 {
		paths = append(paths, strings.Split(sweep.Content[i].Value, "."))
	}
	keys := make([]string, len(paths))
	for i, p := range paths {
		for n := 1; n <= len(p); n++ {
			end, twice := strings.Join(p[len(p)-n:], "."), false
			for j, q := range paths {
				twice = twice || j != i && strings.HasSuffix("."+strings.Join(q, "."), "."+end)
			}
			keys[i] = end
			if !twice {
				break
			}
		}
	}
	return keys
}

// label formats a value for the name of a run.
func label(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	c := clone(n)
	c.Style = yaml.FlowStyle
	out, err := yaml.Marshal(c)
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(out))
}

// only keeps the selected runs.
func (s *Scenario) only(names []string) error {
	if len(names) == 0 {
		return nil
	}
	var kept []Run
	found := map[string]bool{}
	var known []string
	for _, r := range s.Runs {
		if !slices.Contains(known, r.Name) {
			known = append(known, r.Name)
		}
		if slices.ContainsFunc(names, func(n string) bool {
			hit := n == r.Name || n == r.Variant
			found[n] = found[n] || hit
			return hit
		}) {
			kept = append(kept, r)
		}
	}
	for _, n := range names {
		if !found[n] {
			return fmt.Errorf("no run is called %q; there are %s", n, strings.Join(known, "; "))
		}
	}
	s.Runs = kept
	return nil
}
