package export

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// clab is a topology of containerlab (https://containerlab.dev/manual/topo-def-file).
type clab struct {
	Name     string `yaml:"name"`
	Topology struct {
		Kinds map[string]clabKind `yaml:"kinds"`
		Nodes yaml.Node           `yaml:"nodes"`
		Links []clabLink          `yaml:"links"`
	} `yaml:"topology"`
}

type clabKind struct {
	Pull string `yaml:"image-pull-policy"`
}

type clabNode struct {
	Kind  string   `yaml:"kind"`
	Image string   `yaml:"image"`
	User  string   `yaml:"user,omitempty"`
	Cmd   string   `yaml:"cmd,omitempty"`
	Binds []string `yaml:"binds,omitempty"`
	Exec  []string `yaml:"exec,omitempty"`
}

type clabLink struct {
	Endpoints []string `yaml:"endpoints,flow"`
	MTU       int      `yaml:"mtu"`
}

// containerlab writes NAME.clab.yml, and the files of the nodes below NAME/.
func (l *Lab) containerlab() ([]File, error) {
	text, err := l.clab(true)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("# %s\n# sudo containerlab deploy -t %s.clab.yml\n", l.About, l.Name)
	return append([]File{{Path: l.Name + ".clab.yml", Text: append([]byte(head), text...)}}, l.beside()...), nil
}

// clab is the topology's text. Images are those of this machine where it has them
// if local.
func (l *Lab) clab(local bool) ([]byte, error) {
	var c clab
	c.Name = l.Name
	if local {
		c.Topology.Kinds = map[string]clabKind{"linux": {"IfNotPresent"}}
	} else {
		c.Topology.Kinds = map[string]clabKind{"linux": {"Always"}}
	}
	c.Topology.Nodes.Kind = yaml.MappingNode
	for i := range l.Nodes {
		n := &l.Nodes[i]
		v := clabNode{Kind: "linux", Image: n.Image, Cmd: line(n.Command), Exec: n.Kernel}
		if n.Root {
			v.User = "0" // images from scratch know no names
		}
		for _, f := range n.Files {
			v.Binds = append(v.Binds, l.path(n, f)+":"+f.Path+":ro")
		}
		for _, m := range n.Mounts {
			v.Binds = append(v.Binds, m.Dir+":"+m.Path+access(m))
		}
		var key, value yaml.Node
		key.SetString(n.Name)
		if err := value.Encode(v); err != nil {
			return nil, err
		}
		c.Topology.Nodes.Content = append(c.Topology.Nodes.Content, &key, &value)
	}
	for _, k := range l.Links {
		c.Topology.Links = append(c.Topology.Links, clabLink{[]string{k.A.Node + ":" + k.A.Interface, k.B.Node + ":" + k.B.Interface}, k.MTU})
	}
	return document(&c)
}

func access(m Mount) string {
	if m.Writable {
		return ""
	}
	return ":ro"
}

// document is a value as YAML, indented by two as people write it.
func document(v any) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}
