package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"gswitch/config"
)

// containerlab is the release whose schema the topologies are held against.
// The program itself is not needed.
const containerlab = "github.com/srl-labs/containerlab@v0.60.0"

// clab is a topology file, as far as it matters here.
type clab struct {
	file     string
	Name     string
	Topology struct {
		Kinds map[string]clabNode
		Nodes map[string]clabNode
		Links []struct {
			Endpoints []string
			MTU       int
		}
	}
}

type clabNode struct {
	Kind, Image, Cmd string
	Binds, Exec      []string
}

func readTopologies(t *testing.T) (all []clab) {
	t.Helper()
	files, err := filepath.Glob("containerlab/*.clab.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no topologies: %v", err)
	}
	for _, f := range files {
		c := clab{file: f}
		text, err := os.ReadFile(f)
		if err == nil {
			err = yaml.Unmarshal(text, &c)
		}
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for name, n := range c.Topology.Nodes {
			if n.Image == "" {
				n.Image = c.Topology.Kinds[n.Kind].Image
			}
			c.Topology.Nodes[name] = n
		}
		all = append(all, c)
	}
	return all
}

// Containerlab's own schema takes the topologies.
func TestContainerlabSchema(t *testing.T) {
	cmd := exec.Command("go", "mod", "download", "-json", containerlab)
	cmd.Dir = t.TempDir() // outside of the module: its go.sum has nothing to do with this
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &module); jsonErr != nil || err != nil || module.Error != "" {
		t.Skipf("%s cannot be fetched: %v %s", containerlab, err, module.Error)
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(module.Dir, "schemas", "clab.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("containerlab/*.clab.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, exported(t)...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		doc["topology"].(map[string]any)["nodes"].(map[string]any)["x"] = map[string]any{"kind": "linux", "bind": []any{"a:b"}}
		if schema.Validate(doc) == nil {
			t.Error("the schema takes keys that containerlab does not know")
		}
	}
}

// exported are topologies that gfabric export writes: with kernel hosts, with ghosts,
// and of a scenario.
func exported(t *testing.T) (files []string) {
	t.Helper()
	for _, args := range [][]string{
		{"leaf-spine:2,2,1", "--rate", "200Mbps", "--mode", "l3"},
		{"star:3", "--rate", "200Mbps", "--hosts", "ghost"},
		{"../scenarios/agreement/incast2.yaml"},
	} {
		dir := t.TempDir()
		command(t, program(t, "gfabric"), append([]string{"export", "containerlab", "--dir", dir}, args...)...)
		found, err := filepath.Glob(filepath.Join(dir, "*.clab.yml"))
		if err != nil || len(found) != 1 {
			t.Fatalf("export of %v wrote %v: %v", args, found, err)
		}
		files = append(files, found...)
	}
	return files
}

// What no schema sees: configurations are there, right and about the node's
// interfaces; commands have flags that the programs have; images are built.
func TestContainerlab(t *testing.T) {
	images := readImages(t)
	for _, c := range readTopologies(t) {
		if c.Name != strings.TrimSuffix(filepath.Base(c.file), ".clab.yml") {
			t.Errorf("%s is called %s", c.file, c.Name)
		}
		interfaces := c.interfaces(t)
		for name, n := range c.Topology.Nodes {
			where := c.file + ": " + name
			if n.Kind != "linux" {
				t.Errorf("%s: kind %q", where, n.Kind)
			}
			if images[n.Image] == nil {
				if len(n.Binds) > 0 || len(interfaces[name]) != 1 {
					t.Errorf("%s: a host with a kernel's stack has one interface and no files: %v", where, n)
				}
				continue
			}
			files := c.binds(t, where, n)
			words := strings.Fields(n.Cmd)
			file := files[words[slices.Index(words, "-c")+1]]
			if file == "" {
				t.Fatalf("%s: %s reads what is not bound: %v", where, n.Cmd, files)
			}
			want := interfaces[name]
			slices.Sort(want)
			if got := configured(t, n.Image, file); !slices.Equal(got, want) {
				t.Errorf("%s: %s is about %v, the links about %v", where, file, got, want)
			}
			help := command(t, program(t, n.Image), words[0], "--help")
			for _, w := range words[1:] {
				if strings.HasPrefix(w, "-") && !strings.Contains(help, " "+w+" ") && !strings.Contains(help, " "+w+",") {
					t.Errorf("%s: %s %s has no %s", where, n.Image, words[0], w)
				}
			}
			command(t, program(t, n.Image), "validate", file)
		}
	}
}

// interfaces returns the interfaces that links give each node.
func (c *clab) interfaces(t *testing.T) map[string][]string {
	at := map[string][]string{}
	for _, l := range c.Topology.Links {
		if len(l.Endpoints) != 2 || l.MTU != 1500 {
			t.Errorf("%s: link %+v: the default MTU of containerlab is too large for a chunk", c.file, l)
		}
		for _, e := range l.Endpoints {
			node, dev, _ := strings.Cut(e, ":")
			if _, ok := c.Topology.Nodes[node]; !ok || dev == "eth0" || slices.Contains(at[node], dev) {
				t.Errorf("%s: %s is no node's, the management's, or used twice", c.file, e)
			}
			at[node] = append(at[node], dev)
		}
	}
	return at
}

// binds returns the files of this folder by where they are in the container.
func (c *clab) binds(t *testing.T, where string, n clabNode) map[string]string {
	files := map[string]string{}
	for _, b := range n.Binds {
		parts := strings.Split(b, ":")
		if len(parts) != 3 || parts[2] != "ro" {
			t.Errorf("%s: bind %s", where, b)
		}
		file := filepath.Join(filepath.Dir(c.file), parts[0])
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		files[parts[1]] = file
	}
	return files
}

// configured returns the interfaces that a configuration is about, sorted.
func configured(t *testing.T, image, file string) (names []string) {
	t.Helper()
	switch {
	case image == "ghost" && bumps(file):
		b, err := config.LoadTransparent(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Bumps {
			names = append(names, b.Bumps[i].Inner, b.Bumps[i].Outer)
		}
	case image == "ghost":
		h, err := config.LoadHosts(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range h.Hosts {
			names = append(names, h.Hosts[i].Interface)
		}
	default:
		c, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.Switches[0].Ports {
			names = append(names, p.Interface)
		}
	}
	slices.Sort(names)
	return names
}

// bumps reports whether a configuration is of hosts with a kernel's stack.
func bumps(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && strings.Contains(string(text), "\ntransparent:\n")
}

// The topologies work: with a namespace in place of each container, kernel
// hosts reach each other across the fabric, and ghosts send to one another.
func TestContainerlabRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	need(t, "ip", "ethtool") // what the topologies have their kernel hosts run
	removeLeftovers(t)
	for i, c := range readTopologies(t) {
		t.Run(c.Name, func(t *testing.T) { c.run(t, fmt.Sprintf("clab-%d-%d-", os.Getpid(), i)) })
	}
}

func (c *clab) run(t *testing.T, prefix string) {
	images, dir := readImages(t), t.TempDir()
	for name := range c.Topology.Nodes {
		command(t, "ip", "netns", "add", prefix+name)
		t.Cleanup(func() { command(t, "ip", "netns", "del", prefix+name) })
	}
	for _, l := range c.Topology.Links {
		a, aDev, _ := strings.Cut(l.Endpoints[0], ":")
		b, bDev, _ := strings.Cut(l.Endpoints[1], ":")
		command(t, "ip", "link", "add", aDev, "netns", prefix+a, "mtu", strconv.Itoa(l.MTU), "type", "veth", "peer", "name", bDev, "netns", prefix+b, "mtu", strconv.Itoa(l.MTU))
		command(t, "ip", "-n", prefix+a, "link", "set", aDev, "up")
		command(t, "ip", "-n", prefix+b, "link", "set", bDev, "up")
	}
	in := func(node string, args ...string) []string {
		return append([]string{"netns", "exec", prefix + node}, args...)
	}
	var kernels, ghosts []string
	for name, n := range c.Topology.Nodes {
		if images[n.Image] == nil {
			kernels = append(kernels, name)
			continue
		}
		if n.Image == "ghost" && !bumps(c.binds(t, name, n)["/etc/ghost/ghost.yaml"]) {
			ghosts = append(ghosts, name)
		}
		words := append(strings.Fields(n.Cmd), "--socket", filepath.Join(dir, name))
		at := slices.Index(words, "-c") + 1
		words[at] = c.binds(t, name, n)[words[at]]
		p := start(t, "ip", in(name, append([]string{program(t, n.Image)}, words...)...)...)
		await(t, name, func() error {
			p.alive(t)
			if !strings.Contains(p.out.String(), "ready") {
				return fmt.Errorf("is not ready: %s", p.out.String())
			}
			return nil
		})
	}
	for _, name := range kernels {
		for _, cmd := range c.Topology.Nodes[name].Exec {
			command(t, "ip", in(name, strings.Fields(cmd)...)...)
		}
	}
	slices.Sort(kernels)
	slices.Sort(ghosts)
	for i, name := range kernels {
		to := kernels[(i+len(kernels)/2)%len(kernels)] // in leaf-spine behind the other leaf
		await(t, name+" reaches "+to, func() error {
			out, err := exec.Command("ip", in(name, program(t, "gfabric"), "load", "ping", "--count", "1", c.address(to))...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	for i := range max(0, len(ghosts)-1) {
		command(t, program(t, "ghost"), "send", "--socket", filepath.Join(dir, ghosts[i]), "--to", fmt.Sprintf("10.0.0.%d", len(ghosts)), "--size", "100kB")
	}
}

// address is what the commands of a kernel host give it.
func (c *clab) address(node string) string {
	for _, cmd := range c.Topology.Nodes[node].Exec {
		if rest, ok := strings.CutPrefix(cmd, "ip address add "); ok {
			a, _, _ := strings.Cut(rest, "/")
			return a
		}
	}
	return ""
}
