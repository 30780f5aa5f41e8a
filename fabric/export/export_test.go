package export_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gswitch/config"
	"gswitch/fabric"
	"gswitch/fabric/export"
	"gswitch/fabric/lab"
	"gswitch/units"
)

var images = export.Images{Gswitch: "r/gswitch", Ghost: "r/ghost", Gfabric: "r/gfabric", Kernel: "r/kernel"}

func topology(t *testing.T, expr string, hosts export.Hosts) (*export.Lab, *fabric.Plan) {
	t.Helper()
	s := fabric.Spec{Name: "net", Generate: expr, Mode: "l3", Classes: map[string]fabric.Class{
		fabric.ClassHost: {Rate: units.Rate(1e8)}, fabric.ClassFabric: {Rate: units.Rate(4e8)}}}
	topo, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := fabric.NewPlan(topo)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := lab.NewLayout(plan, lab.Options{Each: true, Poll: "sleep"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := export.Topology(layout, hosts, images)
	if err != nil {
		t.Fatal(err)
	}
	return l, plan
}

// Every end of a link is an interface that the node's configuration is about, and
// the other way round.
func TestLinksAreConfigured(t *testing.T) {
	l, plan := topology(t, "leaf-spine(2,3,2)", export.Ghost)
	at := map[string][]string{}
	for _, k := range l.Links {
		for _, e := range []export.End{k.A, k.B} {
			at[e.Node] = append(at[e.Node], e.Interface)
		}
	}
	if len(l.Nodes) != len(plan.Topology.Nodes) || len(at) != len(l.Nodes) {
		t.Fatalf("%d containers, %d have links, for %d nodes", len(l.Nodes), len(at), len(plan.Topology.Nodes))
	}
	dir := t.TempDir()
	for _, n := range l.Nodes {
		file := filepath.Join(dir, n.Name+".yaml")
		if err := os.WriteFile(file, n.Files[0].Text, 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		if n.Image == images.Ghost {
			h, err := config.LoadHosts(file)
			if err != nil {
				t.Fatalf("%s: %v\n%s", n.Name, err, n.Files[0].Text)
			}
			got = append(got, h.Hosts[0].Interface)
		} else {
			c, err := config.Load(file)
			if err != nil {
				t.Fatalf("%s: %v\n%s", n.Name, err, n.Files[0].Text)
			}
			for _, p := range c.Switches[0].Ports {
				got = append(got, p.Interface)
			}
		}
		slices.Sort(got)
		slices.Sort(at[n.Name])
		if !slices.Equal(got, at[n.Name]) {
			t.Errorf("%s is about %v, the links about %v", n.Name, got, at[n.Name])
		}
	}
}

// A host with a kernel's own stack leaves the default route to the management
// network, and reaches all other networks of hosts.
func TestKernelHosts(t *testing.T) {
	l, plan := topology(t, "leaf-spine(1,3,1)", export.Kernel)
	for _, n := range l.Nodes {
		if n.Image != images.Kernel {
			continue
		}
		text := strings.Join(n.Kernel, "\n")
		if strings.Contains(text, "default") || strings.Contains(text, " 0.0.0.0/0") {
			t.Errorf("%s: %s", n.Name, text)
		}
		if routes := strings.Count(text, "ip route replace 10."); routes != len(plan.Topology.Switches())-2 {
			t.Errorf("%s has %d routes, want one to each of the two other leaves:\n%s", n.Name, routes, text)
		}
	}
}

// What a format writes names every container and every link once, and files lie
// where it says.
func TestFormats(t *testing.T) {
	for _, f := range export.Names() {
		l, _ := topology(t, "star(3)", export.Ghost)
		dir := t.TempDir()
		paths, err := export.Write(l, f, dir, false)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		d := yaml.NewDecoder(bytes.NewReader(text))
		var docs []map[string]any
		for {
			var doc map[string]any
			if err := d.Decode(&doc); err != nil {
				break
			}
			docs = append(docs, doc)
		}
		if want := map[string]int{"containerlab": 1, "clabernetes": 2, "compose": 1}[f]; len(docs) != want {
			t.Errorf("%s: %d documents, want %d", f, len(docs), want)
		}
		for _, n := range l.Nodes {
			if !strings.Contains(string(text), n.Name+":\n") {
				t.Errorf("%s: there is no container %s:\n%s", f, n.Name, text)
			}
			if bound := l.Name + "/" + n.Name + ".yaml:" + n.Files[0].Path + ":ro"; !strings.Contains(string(text), bound) {
				t.Errorf("%s: %s is not given its file:\n%s", f, n.Name, text)
			}
			if _, err := os.Stat(filepath.Join(dir, l.Name, n.Name+".yaml")); (err == nil) == (f == "clabernetes") {
				t.Errorf("%s: file of %s: %v", f, n.Name, err)
			}
		}
		if _, err := export.Write(l, f, dir, false); err == nil || !strings.Contains(err.Error(), "is there already") {
			t.Errorf("%s: written over what is there: %v", f, err)
		}
		if _, err := export.Write(l, f, dir, true); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	if _, err := export.Write(&export.Lab{}, "vagrant", t.TempDir(), false); err == nil {
		t.Error("an unknown format is written")
	}
}

// A container of a daemon has the capabilities that the daemon takes and no others,
// and its image's user; one of a scenario is root, with two more.
func TestRights(t *testing.T) {
	l, _ := topology(t, "star(2)", export.Ghost)
	l.Nodes = append(l.Nodes, export.Node{Name: "node", Root: true})
	dir := t.TempDir()
	if _, err := export.Write(l, "compose", dir, false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Services map[string]struct {
			User       string
			Privileged bool
			Drop       []string `yaml:"cap_drop"`
			Add        []string `yaml:"cap_add"`
		}
	}
	if err := yaml.Unmarshal(text, &p); err != nil || len(p.Services) != len(l.Nodes) {
		t.Fatalf("%v: %s", err, text)
	}
	daemon := []string{"NET_ADMIN", "NET_RAW", "BPF", "PERFMON", "IPC_LOCK"}
	for name, s := range p.Services {
		user, add := "", daemon
		if name == "node" {
			user, add = "0", append([]string{"SYS_NICE", "DAC_OVERRIDE"}, daemon...)
		}
		if s.User != user || s.Privileged || !slices.Equal(s.Drop, []string{"ALL"}) || !slices.Equal(s.Add, add) {
			t.Errorf("%s: %+v, want the user %q and %v", name, s, user, add)
		}
	}
}

// Nodes that share a directory and a clock cannot be pods on many machines.
func TestScenarioIsNotForPods(t *testing.T) {
	l := &export.Lab{Name: "x", Nodes: []export.Node{{Name: "h1", Mounts: []export.Mount{{Dir: "run", Path: "/run"}}}}}
	if _, err := export.Write(l, "clabernetes", t.TempDir(), false); err == nil || !strings.Contains(err.Error(), "shares a directory and a clock") {
		t.Errorf("it is exported: %v", err)
	}
}

// A manifest leads to no file outside of the directory.
func TestManifest(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"scenario: ../../etc/passwd\n": "does not lie in files/",
		"scenario: [a]\n":              "lab.yaml",
		"scenery: a.yaml\n":            "scenery",
		"":                             "lab.yaml",
	} {
		if err := os.WriteFile(filepath.Join(dir, "lab.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := export.ReadManifest(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
