package export

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"go.yaml.in/yaml/v3"

	"gswitch/fabric"
	"gswitch/fabric/lab"
	"gswitch/fabric/scenario"
	"gswitch/section"
	"gswitch/wholefile"
)

// Where the nodes of a scenario are, in the directory that is written and in
// containers.
const (
	Files    = "files" // the scenario and what it names
	Sockets  = "run"
	manifest = "lab.yaml"
	home     = "/run/gfabric/files"
	sockets  = "/run/gfabric/run"
)

// Socket is where the node of a name takes runs, from the directory.
func Socket(node string) string { return filepath.Join(Sockets, node+".sock") }

// Scenario makes the nodes of a scenario's topology containers, each with a process
// that steps it. What they run comes later, with who collects the results.
func Scenario(s *scenario.Scenario, t *fabric.Topology, images Images) *Lab {
	out := &Lab{Name: t.Name, About: fmt.Sprintf("%s, with a container for each of its %d nodes.", s.Doc.Name, len(t.Nodes)), Links: links(t, lab.WireMTU)}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		words := []string{"node", n.Name, "--listen", filepath.Join(sockets, n.Name+".sock"), "--dir", home, "--wait", wait}
		for port := range n.Links {
			words = append(words, "--interface", Interface(port))
		}
		out.Nodes = append(out.Nodes, Node{Name: n.Name, Image: images.Gfabric, Command: words, Root: true,
			Mounts: []Mount{{Dir: Files, Path: home}, {Dir: Sockets, Path: sockets, Writable: true}}})
	}
	return out
}

// Of is the topology of all runs of a scenario, which have one.
func Of(s *scenario.Scenario) (*fabric.Topology, error) {
	t := s.Runs[0].Topology
	for i := range s.Runs {
		if !reflect.DeepEqual(s.Runs[i].Topology, t) {
			return nil, fmt.Errorf("%s: the runs %s and %s have different topologies, and the links of containers stay: choose runs of one (--only)", s.File, s.Runs[0].Name, s.Runs[i].Name)
		}
	}
	return t, nil
}

// Manifest says what the containers of a directory are for.
type Manifest struct {
	Scenario string   `yaml:"scenario"`       // in Files
	Set      []string `yaml:"set,omitempty"`  // scenario.Options.Set
	Only     []string `yaml:"only,omitempty"` // scenario.Options.Only
}

// ReadManifest reads that of a directory.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifest)
	text, err := wholefile.Read(path, section.MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("%w: gfabric export writes a scenario's containers to a directory with this file", err)
	}
	m := new(Manifest)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !filepath.IsLocal(m.Scenario) {
		return nil, fmt.Errorf("%s: the scenario %q does not lie in %s/", path, m.Scenario, Files)
	}
	return m, nil
}

// Copy puts the scenario's document, and the files that it names, where the
// containers find them, with a manifest. It returns what it has written.
func Copy(s *scenario.Scenario, set, only []string, dir string) (paths []string, err error) {
	names, err := s.Files()
	if err != nil {
		return nil, err
	}
	m := Manifest{filepath.Base(s.File), set, only}
	for _, name := range append(names, m.Scenario) {
		text, err := wholefile.ReadPlain(filepath.Join(filepath.Dir(s.File), name), 1<<30)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(dir, Files, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, err
		}
		if err := wholefile.WriteBytes(to, 0o644, text); err != nil {
			return nil, err
		}
		paths = append(paths, to)
	}
	text, err := document(&m)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, manifest)
	return append(paths, path), wholefile.WriteBytes(path, 0o644, text)
}
