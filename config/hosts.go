package config

import (
	"cmp"
	"fmt"

	"go.yaml.in/yaml/v3"

	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/section"
	"gswitch/units"
	"gswitch/wholefile"
)

// Hosts is the document of a ghost: the hosts of one process, and what they
// share. A document of one host may write its keys beside the others instead
// of a list.
type Hosts struct {
	Version int         `yaml:"version" need:"yes" range:"1,1" doc:"Version of this format: 1."`
	Workers []Worker    `yaml:"workers" doc:"Threads that drive the hosts. One adaptive worker, not pinned, if left out."`
	Memory  HostMemory  `yaml:"memory" doc:"The packet memory that all hosts share."`
	Control HostControl `yaml:"control" doc:"Where the API, the command line and Prometheus reach the daemon."`
	Export  *Export     `yaml:"export" doc:"Where the reports of the hosts go: digests of lossradar. Nowhere if left out."`
	Hosts   []Host      `yaml:"hosts" need:"yes" id:"name" doc:"The hosts of this process."`
}

// soleHost is the document of one host.
type soleHost struct {
	Version int `yaml:"version" need:"yes" range:"1,1" doc:"Version of this format: 1."`
	Host
	Worker  Worker      `yaml:"worker" doc:"The thread that drives the host."`
	Memory  HostMemory  `yaml:"memory" doc:"The packet memory."`
	Control HostControl `yaml:"control" doc:"Where the API, the command line and Prometheus reach the daemon."`
	Export  *Export     `yaml:"export" doc:"Where the reports of the host go: digests of lossradar. Nowhere if left out."`
}

// HostMemory is the arena of frames of hosts.
type HostMemory struct {
	Frames int `yaml:"frames" range:"1024,16777216" doc:"Number of chunks. Computed from the hosts and the queues of their interfaces if left out: more leave room for hosts that a reload adds."`
}

// HostControl is where the daemon of hosts listens: Control with another place
// of the socket.
type HostControl struct {
	Socket string   `yaml:"socket" doc:"Unix socket of the API. /run/ghost/NAME.sock with the name of the first host if left out."`
	Group  string   `yaml:"group" doc:"Group that may use the socket beside the daemon's own user. The daemon's own group if left out."`
	Listen string   `yaml:"listen" doc:"TCP address (host:port) that serves /metrics and /healthz. None if left out."`
	Names  []string `yaml:"names" doc:"Names by which the TCP address is asked for, besides IP addresses, localhost and this machine's name. Requests by other names are refused: a web page can have its own name lead here."`
	API    *Remote  `yaml:"api" doc:"What opens the API at the TCP address, too. The API is at the socket only if left out."`
}

// HostSocketDir is where hosts put their sockets unless the configuration says where.
const HostSocketDir = "/run/ghost"

// LoadHosts reads and checks the document in a file.
func LoadHosts(path string) (*Hosts, error) {
	data, err := wholefile.Read(path, section.MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return ParseHosts(path, data)
}

// ParseHosts decodes and checks a document, and fills in what was left out.
// file is the name that errors carry. The error, if any, is of type Errors.
func ParseHosts(file string, data []byte) (*Hosts, error) {
	s, root := section.Read(file, data)
	c := new(Hosts)
	list := root != nil && hasKey(root, "hosts")
	switch {
	case root == nil:
	case list:
		s.Into(root, c)
	default:
		var sole soleHost
		s.Into(root, &sole)
		*c = Hosts{Version: sole.Version, Workers: []Worker{sole.Worker}, Memory: sole.Memory, Control: sole.Control, Export: sole.Export, Hosts: []Host{sole.Host}}
	}
	if s.Err() == nil {
		c.complete(s, list)
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// complete checks a document, in which the hosts are a list or stand for
// themselves, and fills in what was left out.
func (c *Hosts) complete(s *section.Section, list bool) {
	prefix := func(i int) string {
		if list {
			return fmt.Sprintf("hosts[%d].", i)
		}
		return ""
	}
	for i := range c.Hosts {
		if s.Has(prefix(i)+"rate") && c.Hosts[i].Rate == 0 {
			s.Fail(prefix(i)+"rate", "a host paces: give the rate of its link, such as 10Gbps")
		}
	}
	if len(c.Workers) == 0 {
		c.Workers = make([]Worker, 1)
	}
	section.Fill(c)
	if len(c.Hosts) == 0 {
		s.Fail("hosts", "is empty; name a host with its interface and address")
		return
	}
	names, interfaces := map[string]int{}, map[[2]string]int{}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		h.validate(s, prefix(i))
		h.Name = cmp.Or(h.Name, h.Interface)
		if h.Timeout == 0 {
			least := 20 * frame.Millisecond
			if h.BaseRTT == AutoRTT {
				least *= 5 // any network, until it was measured
			}
			h.Timeout = units.Duration(max(20*h.T(), least))
		}
		if h.Worker == nil {
			w := i % len(c.Workers)
			h.Worker = &w
		} else if *h.Worker >= len(c.Workers) {
			s.Fail(prefix(i)+"worker", "there is no worker %d: workers lists %d, counted from 0", *h.Worker, len(c.Workers))
		}
		if first, twice := names[h.Name]; twice {
			s.Fail(prefix(i)+"name", "%q is the name of hosts[%d] too; give each host a name of its own", h.Name, first)
		}
		at := [2]string{h.NetNS, h.Interface}
		if first, twice := interfaces[at]; twice {
			s.Fail(prefix(i)+"interface", "%s is the interface of hosts[%d] too; each host needs one of its own", h.Interface, first)
		}
		names[h.Name], interfaces[at] = i, i
	}
	control := Control(c.Control)
	control.problems(s.Fail)
	c.Export.problems(s.Fail)
	if c.Control.Socket == "" {
		c.Control.Socket = c.DefaultSocket()
	}
}

// DefaultSocket returns where the daemon listens unless the document says so.
func (c *Hosts) DefaultSocket() string { return HostSocketDir + "/" + c.Hosts[0].Name + ".sock" }

// Find returns the host of a name, nil if there is none.
func (c *Hosts) Find(name string) *Host {
	for i := range c.Hosts {
		if c.Hosts[i].Name == name {
			return &c.Hosts[i]
		}
	}
	return nil
}

// Clone returns a deep copy.
func (c *Hosts) Clone() *Hosts {
	return section.Clone(c)
}

// YAML writes the document, with the defaults that were filled in.
func (c *Hosts) YAML() []byte { return section.YAML(c) }

// MarshalJSON writes the document with the keys and the units of its YAML.
func (c *Hosts) MarshalJSON() ([]byte, error) { return section.JSON(c) }

// HostsSchema returns the JSON Schema of the document of hosts.
func HostsSchema() []byte {
	return section.Schema("ghost configuration", new(soleHost), new(Hosts))
}

// Engine returns what the engine of the hosts is made from. Its Chunks are left
// to the caller, who knows the interfaces, where the document does not say
// them.
func (c *Hosts) Engine() dataplane.Config {
	shared := Config{Workers: c.Workers, Memory: Memory{Chunk: c.ChunkSize(), Frames: c.Memory.Frames, HugePages: "off"}}
	return shared.Engine()
}

// ChunkSize returns the bytes of a chunk that the largest frame of a host fits
// into.
func (c *Hosts) ChunkSize() int {
	for i := range c.Hosts {
		if c.Hosts[i].Payload > largestPayload {
			return 4096
		}
	}
	return 2048
}
