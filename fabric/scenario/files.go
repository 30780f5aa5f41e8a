package scenario

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gswitch/config"
	"gswitch/fabric"
	"gswitch/fabric/workload"
	"gswitch/policy"
	"gswitch/wholefile"
)

// named is a file that a scenario names.
type named struct {
	path string
	most int64 // limit of its size in bytes
}

const (
	maxSizes  = 16 << 20       // of a flow size distribution
	maxTrace  = 256 << 20      // of a flow trace: some five million flows
	maxPolicy = policy.MaxText // of a policy
)

// beside is a file whose path is relative to the directory of the scenario.
func beside(dir, path string, most int64) named {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return named{path, most}
}

// files returns the files that the entry's flows are read from.
func (e *Entry) files(dir string) (v []named) {
	if e.Sizes != "" && workload.Named(e.Sizes) == nil {
		v = append(v, beside(dir, e.Sizes, maxSizes))
	}
	if e.File != "" {
		v = append(v, beside(dir, e.File, maxTrace))
	}
	return v
}

// policies are the keys under which a document names policy files.
var policies = [][2]string{{"switch", "policy"}, {"switch", "shadow"}, {"hosts", "policy"}}

// Files returns the files that the runs name, as paths relative to the directory of the
// scenario. A file outside that directory is an error, since the scenario could not be
// run from a copy of the directory.
func (s *Scenario) Files() ([]string, error) {
	dir := filepath.Dir(s.File)
	var all []string
	add := func(path string) error {
		rel, err := inside(dir, path)
		if err != nil {
			return fmt.Errorf("%s: %w", s.File, err)
		}
		if !slices.Contains(all, rel) {
			all = append(all, rel)
		}
		return nil
	}
	for i := range s.Runs {
		r := &s.Runs[i]
		for k := range r.Doc.Workload {
			for _, n := range r.Doc.Workload[k].files(dir) {
				if err := add(n.path); err != nil {
					return nil, err
				}
			}
		}
		for _, at := range policies {
			n := child(child(child(r.source, at[0]), at[1]), "file")
			if n == nil || n.Value == "" {
				continue
			}
			if err := add(beside(dir, n.Value, 0).path); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// inside returns the path of a file relative to a directory that contains it.
func inside(dir, path string) (string, error) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("the file %s does not lie beside the scenario or below: move it there", path)
	}
	return rel, nil
}

// confined reports a file that a document names and that lies outside its directory. It
// opens no file.
func (d *Document) confined(dir string) error {
	for i := range d.Workload {
		for _, n := range d.Workload[i].files(dir) {
			if _, err := inside(dir, n.path); err != nil {
				return err
			}
		}
	}
	for _, p := range []*config.Policy{&d.Switch.Policy, &d.Switch.Shadow, &d.Hosts.Policy} {
		if p.File == "" {
			continue
		}
		if _, err := inside(dir, beside(dir, p.File, maxPolicy).path); err != nil {
			return err
		}
	}
	return nil
}

// readPolicy reads the file of a policy.
func readPolicy(path string) ([]byte, error) { return named{path, maxPolicy}.read() }

func (n named) read() ([]byte, error) { return wholefile.ReadPlain(n.path, n.most) }

// sizesOf returns a built-in flow size distribution or that of a file.
func sizesOf(name, dir string) (*workload.CDF, error) {
	if c := workload.Named(name); c != nil {
		return c, nil
	}
	n := beside(dir, name, maxSizes)
	data, err := n.read()
	if err != nil {
		return nil, fmt.Errorf("%q is neither a distribution that this program has (%s) nor a file that can be read: %w", name, strings.Join(workload.Names(), ", "), err)
	}
	return workload.ParseCDF(n.path, data)
}

// flowsOf returns the flows of a trace, of one run if it has several.
func flowsOf(name, run, dir string, t *fabric.Topology) ([]workload.Flow, error) {
	if name == "" {
		return nil, fmt.Errorf("wants file, with the flows")
	}
	n := beside(dir, name, maxTrace)
	data, err := n.read()
	if err != nil {
		return nil, err
	}
	places := map[string]int32{}
	for i := range t.Hosts() {
		places[strconv.Itoa(i)] = int32(i)
	}
	for i, h := range t.Hosts() {
		places[t.Nodes[h].Name] = int32(i) // a host whose name is a number takes precedence over the index
	}
	return workload.ParseTrace(n.path, data, run, func(name string) (int32, error) {
		h, ok := places[name]
		if !ok {
			return 0, fmt.Errorf("there is no host %q", name)
		}
		return h, nil
	})
}
