package export

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// project is one of docker compose (https://compose-spec.io).
type project struct {
	Name     string    `yaml:"name"`
	Services yaml.Node `yaml:"services"`
}

type service struct {
	Image     string         `yaml:"image"`
	Container string         `yaml:"container_name"`
	User      string         `yaml:"user,omitempty"`
	Command   []string       `yaml:"command,flow,omitempty"`
	Network   string         `yaml:"network_mode"`
	Drop      []string       `yaml:"cap_drop,flow,omitempty"`
	Add       []string       `yaml:"cap_add,flow,omitempty"`
	Ulimits   map[string]int `yaml:"ulimits,flow,omitempty"`
	Volumes   []string       `yaml:"volumes,omitempty"`
	Sysctls   map[string]int `yaml:"sysctls,omitempty"`
	Init      bool           `yaml:"init,omitempty"`
}

// capabilities are those that a node with AF_XDP sockets takes (docs/SECURITY.md).
var capabilities = []string{"NET_ADMIN", "NET_RAW", "BPF", "PERFMON", "IPC_LOCK"}

// compose writes compose.yaml, which has containers without a network, wire.sh,
// which joins them, and the files of the nodes below NAME/. Networks of docker
// would not do: their bridges keep pause frames and LLDP for themselves (IEEE
// 802.1D 7.12.6).
func (l *Lab) compose() ([]File, error) {
	p := project{Name: l.Name}
	p.Services.Kind = yaml.MappingNode
	for i := range l.Nodes {
		n := &l.Nodes[i]
		s := service{Image: n.Image, Container: l.container(n.Name), Command: n.Command, Network: "none"}
		if n.Kernel == nil {
			s.Drop, s.Add, s.Ulimits = []string{"ALL"}, capabilities, map[string]int{"memlock": -1}
			// The kernel is to keep out of what belongs to the node.
			s.Sysctls = map[string]int{"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1}
		} else {
			s.Init = true
		}
		if n.Root {
			s.User = "0" // images from scratch know no names
			s.Add = append([]string{"SYS_NICE", "DAC_OVERRIDE"}, s.Add...)
		}
		for _, f := range n.Files {
			s.Volumes = append(s.Volumes, "./"+l.path(n, f)+":"+f.Path+":ro")
		}
		for _, m := range n.Mounts {
			s.Volumes = append(s.Volumes, "./"+strings.TrimPrefix(m.Dir, "./")+":"+m.Path+access(m))
		}
		var key, value yaml.Node
		key.SetString(n.Name)
		if err := value.Encode(s); err != nil {
			return nil, err
		}
		p.Services.Content = append(p.Services.Content, &key, &value)
	}
	text, err := document(&p)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("# %s\n# docker compose up -d && sudo ./wire.sh\n", l.About)
	return append([]File{{Path: "compose.yaml", Text: append([]byte(head), text...)}, {Path: "wire.sh", Text: l.wires()}}, l.beside()...), nil
}

func (l *Lab) container(node string) string { return l.Name + "-" + node }

// wires is the script that makes the links of running containers.
func (l *Lab) wires() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `#!/bin/sh
# Joins the containers of compose.yaml: run it as root, once they run and each time that they were
# started anew. It takes ip and nsenter (packages iproute2 and util-linux), and ethtool for hosts.
set -eu

# pid NODE prints the process of a container, in whose network namespace its links are.
pid() {
  p=$(docker inspect -f '{{.State.Pid}}' %s-"$1")
  [ "$p" != 0 ] || { echo "container %s-$1 does not run: docker compose up -d" >&2; exit 1; }
  echo "$p"
}

# link NODE INTERFACE NODE INTERFACE MTU makes a link, if it is not there.
link() {
  a=$(pid "$1"); b=$(pid "$3")
  nsenter -t "$a" -n ip link show dev "$2" >/dev/null 2>&1 ||
    ip link add "$2" netns "$a" mtu "$5" type veth peer name "$4" netns "$b" mtu "$5"
  nsenter -t "$a" -n ip link set "$2" up
  nsenter -t "$b" -n ip link set "$4" up
}

# host NODE COMMAND... runs a command in the network namespace of a host.
host() {
  p=$(pid "$1"); shift
  nsenter -t "$p" -n "$@"
}

`, l.Name, l.Name)
	for _, k := range l.Links {
		fmt.Fprintf(&b, "link %s %s %s %s %d\n", k.A.Node, k.A.Interface, k.B.Node, k.B.Interface, k.MTU)
	}
	for i := range l.Nodes {
		for _, c := range l.Nodes[i].Kernel {
			fmt.Fprintf(&b, "host %s %s\n", l.Nodes[i].Name, c)
		}
	}
	return []byte(b.String())
}

// line is a command as containerlab splits it again (shlex): words with other
// than plain characters are quoted.
func line(words []string) string {
	var v []string
	for _, w := range words {
		if strings.Trim(w, plain) != "" || w == "" {
			w = "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
		}
		v = append(v, w)
	}
	return strings.Join(v, " ")
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@+"
