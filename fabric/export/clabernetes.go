package export

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// resource is an object of Kubernetes, as far as this is about any.
type resource struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   map[string]string `yaml:"metadata"`
	Data       map[string]string `yaml:"data,omitempty"`
	Spec       any               `yaml:"spec,omitempty"`
}

// topologySpec is that of clabernetes' Topology (clabernetes.containerlab.dev/v1alpha1).
type topologySpec struct {
	Definition struct {
		Containerlab string `yaml:"containerlab"`
	} `yaml:"definition"`
	Deployment struct {
		Files map[string][]configFile `yaml:"filesFromConfigMap"`
	} `yaml:"deployment"`
}

type configFile struct {
	ConfigMap string `yaml:"configMapName"`
	Key       string `yaml:"configMapPath"`
	Path      string `yaml:"filePath"`
	Mode      string `yaml:"mode"`
}

// mostData bounds a ConfigMap (kubernetes.io/docs/concepts/configuration/configmap).
const mostData = 1 << 20

// clabernetes writes NAME.yaml: a ConfigMap with the files of the nodes, and the
// topology.
func (l *Lab) clabernetes() ([]File, error) {
	var spec topologySpec
	text, err := l.clab(false)
	if err != nil {
		return nil, err
	}
	spec.Definition.Containerlab = string(text)
	spec.Deployment.Files = map[string][]configFile{}
	data, total := map[string]string{}, 0
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if len(n.Mounts) > 0 {
			return nil, fmt.Errorf("%s is stepped by a process that shares a directory and a clock with the others, and the pods of clabernetes are on many machines: export it to containerlab or compose, or export its topology", n.Name)
		}
		for _, f := range n.Files {
			path := l.path(n, f)
			key := filepath.Base(path)
			data[key] = string(f.Text)
			total += len(f.Text)
			spec.Deployment.Files[n.Name] = append(spec.Deployment.Files[n.Name], configFile{l.Name, key, path, "read"})
		}
	}
	if total > mostData {
		return nil, fmt.Errorf("the configurations have %d bytes, a ConfigMap holds %d: export a smaller network", total, mostData)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n# kubectl apply -f %s.yaml\n", l.About, l.Name)
	for i, r := range []resource{
		{APIVersion: "v1", Kind: "ConfigMap", Metadata: map[string]string{"name": l.Name}, Data: data},
		{APIVersion: "clabernetes.containerlab.dev/v1alpha1", Kind: "Topology", Metadata: map[string]string{"name": l.Name}, Spec: spec},
	} {
		text, err := document(r)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(text)
	}
	return []File{{Path: l.Name + ".yaml", Text: b.Bytes()}}, nil
}
