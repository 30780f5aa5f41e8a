package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"go.yaml.in/yaml/v3"
)

// checker decodes objects of Kubernetes into the types of its API, strictly: keys
// that these do not have, and values of other types, are errors.
const checker = `package main

import (
	"bytes"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	types := map[string]func() any{
		"v1 ConfigMap":                 func() any { return new(corev1.ConfigMap) },
		"v1 Service":                   func() any { return new(corev1.Service) },
		"v1 PersistentVolumeClaim":     func() any { return new(corev1.PersistentVolumeClaim) },
		"apps/v1 StatefulSet":          func() any { return new(appsv1.StatefulSet) },
		"apps/v1 Deployment":           func() any { return new(appsv1.Deployment) },
		"batch/v1 Job":                 func() any { return new(batchv1.Job) },
		"policy/v1 PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
	}
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for i, doc := range bytes.Split(text, []byte("\n---\n")) {
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal(doc, &head); err != nil {
				fmt.Printf("%s, document %d: %v\n", file, i+1, err)
				continue
			}
			make := types[head.APIVersion+" "+head.Kind]
			if make == nil {
				fmt.Printf("%s, document %d: unknown kind %s %s\n", file, i+1, head.APIVersion, head.Kind)
				continue
			}
			if err := yaml.UnmarshalStrict(doc, make()); err != nil {
				fmt.Printf("%s, document %d (%s): %v\n", file, i+1, head.Kind, err)
			}
		}
	}
	fmt.Println("checked")
}
`

const checkerModule = `module checker

go 1.25

require (
	k8s.io/api v0.34.1
	sigs.k8s.io/yaml v1.6.0
)
`

// The types of Kubernetes' own API take the objects.
func TestKubernetesTypes(t *testing.T) {
	if os.Getenv("GSWITCH_CI") == "" {
		t.Skip("fetches and compiles Kubernetes' types, which takes a minute: GSWITCH_CI=1 runs it")
	}
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("files %v: %v", files, err)
	}
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	for name, text := range map[string]string{"main.go": checker, "go.mod": checkerModule,
		"broken.yaml": "apiVersion: apps/v1\nkind: Deployment\nspec: {replica: 3}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) (string, error) {
		c := exec.Command(name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run("go", "build", "-o", "checker", "."); err != nil {
		if strings.Contains(out, "main.go:") && !strings.Contains(out, "no required module") {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Skipf("the types of Kubernetes cannot be fetched: %v\n%s", err, out)
	}
	for _, f := range files {
		path, err := filepath.Abs(f)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := run("./checker", path); err != nil || out != "checked\n" {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if out, _ := run("./checker", broken); !strings.Contains(out, "replica") {
		t.Errorf("a key that there is not was taken: %s", out)
	}
}

// container is what matters of one here.
type container struct {
	Name, Image string
	Args        []string
	Env         []struct{ Name, Value string }
	Resources   struct{ Requests, Limits map[string]string }
	Security    struct {
		Escalation *bool                   `yaml:"allowPrivilegeEscalation"`
		ReadOnly   bool                    `yaml:"readOnlyRootFilesystem"`
		Caps       struct{ Drop []string } `yaml:"capabilities"`
	} `yaml:"securityContext"`
	Mounts []struct {
		Name string
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec struct {
				Token    *bool `yaml:"automountServiceAccountToken"`
				Security struct {
					NonRoot bool                  `yaml:"runAsNonRoot"`
					User    int                   `yaml:"runAsUser"`
					Seccomp struct{ Type string } `yaml:"seccompProfile"`
				} `yaml:"securityContext"`
				Containers []container
				Volumes    []struct {
					Name  string
					Empty any `yaml:"emptyDir"`
				}
			}
		}
	}
}

func objects(t *testing.T, file string) (v []object) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return v
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		v = append(v, o)
	}
}

// What no type sees: no container is root or can become it, memory is bounded, flags are
// those of the programs, and what a program writes to is writable.
func TestKubernetes(t *testing.T) {
	images, pods := readImages(t), 0
	for _, file := range []string{"kubernetes/nats.yaml", "kubernetes/workers.yaml", "kubernetes/sweep.yaml"} {
		for _, o := range objects(t, file) {
			spec := &o.Spec.Template.Spec
			for _, c := range spec.Containers {
				pods++
				where := file + ": " + c.Name
				if s := spec.Security; !s.NonRoot || s.User == 0 || s.Seccomp.Type != "RuntimeDefault" || spec.Token == nil || *spec.Token {
					t.Errorf("%s: rights of its pod: %+v", where, spec)
				}
				if c.Security.Escalation == nil || *c.Security.Escalation || !c.Security.ReadOnly || strings.Join(c.Security.Caps.Drop, " ") != "ALL" {
					t.Errorf("%s: rights %+v", where, c.Security)
				}
				if c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] == "" {
					t.Errorf("%s: resources %+v", where, c.Resources)
				}
				volumes := map[string]bool{}
				for _, v := range spec.Volumes {
					volumes[v.Name] = v.Empty != nil
				}
				tmp := false
				for _, m := range c.Mounts {
					tmp = tmp || m.Path == "/tmp" && volumes[m.Name]
				}
				if !tmp {
					t.Errorf("%s: /tmp is not writable", where)
				}
				if images[c.Image] == nil {
					continue // NATS
				}
				help := command(t, program(t, c.Image), c.Args[0], "--help")
				for _, w := range c.Args[1:] {
					if strings.HasPrefix(w, "-") && !strings.Contains(help, " "+w+" ") {
						t.Errorf("%s: %s %s has no %s", where, c.Image, c.Args[0], w)
					}
				}
			}
		}
	}
	if pods != 3 {
		t.Errorf("%d containers were looked at, want 3", pods)
	}
}

// NATS itself reads the configuration of its servers.
func TestKubernetesNATS(t *testing.T) {
	var conf string
	for _, o := range objects(t, "kubernetes/nats.yaml") {
		if o.Kind == "ConfigMap" {
			conf = o.Data["nats.conf"]
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			for _, e := range c.Env {
				t.Setenv(e.Name, strings.ReplaceAll(e.Value, "$(TOKEN)", "secret"))
			}
		}
	}
	t.Setenv("POD_NAME", "sweep-nats-1")
	t.Setenv("TOKEN", "secret")
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if o.ServerName != "sweep-nats-1" || o.Authorization != "secret" || !o.JetStream || len(o.Routes) != 3 || o.Cluster.Password != "secret" {
		t.Errorf("server %q, JetStream %v, routes %v", o.ServerName, o.JetStream, o.Routes)
	}
	for _, r := range o.Routes {
		if p, _ := r.User.Password(); p != "secret" || !strings.HasPrefix(r.Host, "sweep-nats-") {
			t.Errorf("route %s", r)
		}
	}
}
