package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"gswitch/hostnic"
	"gswitch/policy"
	"gswitch/scheduler"
	"gswitch/vswitch"
)

// Policy is a text of OpenQueue, which says how an egress queue is buffered and
// served.
type Policy struct {
	File     string `yaml:"file" doc:"File with the policy, beside this document. Whoever reads the document puts its text here."`
	Text     string `yaml:"text" doc:"The policy itself, as docs/POLICIES.md has it."`
	Previous string `yaml:"previous" doc:"The text before, which gswitch policy rollback brings back."`
}

// Read takes the text from the file, if one is named. from is the document, read
// what reads files.
func (p *Policy) Read(from string, read func(string) ([]byte, error)) error {
	switch {
	case p.File == "":
		return nil
	case p.Text != "":
		return fmt.Errorf("has a file and a text; leave one of the two")
	case read == nil:
		return fmt.Errorf("names the file %s, and the API reads none: gswitch apply and gswitch policy apply put its text here", p.File)
	}
	path := p.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(from), path)
	}
	text, err := read(path)
	if err != nil {
		return err
	}
	if _, err := policy.Compile(path, string(text)); err != nil {
		return err // with the file's own lines
	}
	p.File, p.Text = "", string(text)
	return nil
}

// on reports whether a section of a queue was written.
func (p *Policy) on() bool { return p != nil && p.Text != "" }

// Ports returns how many ports a policy has that was checked.
func (p *Policy) Ports() int { return policy.Ports(p.Text) }

// Serve puts a policy and a shadow beside what else is said of a queue.
func Serve(c scheduler.QueueConfig, live, shadow *Policy) scheduler.QueueConfig {
	if live.on() {
		c.Order = policy.Order{Text: live.Text}
	}
	if shadow.on() {
		c.Admission = policy.Shadow{Text: shadow.Text, Under: c.Admission}
	}
	return c
}

// CheckServe returns what is wrong with what says how a queue is served, and under which
// key. Its order and its admission are right.
func CheckServe(q *Queue, lossless bool) (key, problem string) {
	if q.Policy != nil {
		if _, err := q.Policy.compile(); err != nil {
			return "policy", err.Error()
		}
	}
	if q.Shadow != nil {
		p, err := q.Shadow.compile()
		switch {
		case err != nil:
			return "shadow", err.Error()
		case len(p.Parts()) > 1:
			return "shadow", fmt.Sprintf("has %d ports: a shadow is of one queue; leave the others out", len(p.Parts()))
		case p.NeedsBytes():
			return "shadow", "reads tos, ecn, id, tot_len, saddr or daddr, which stand in frames: a shadow keeps records; dscp, flow, proto and ports are in those"
		}
	}
	has := func(k string) bool { return k == vswitch.Lossless && lossless || q.has(k) }
	if x := vswitch.Excluded(vswitch.OneQueue, "", has); x != nil {
		if key = x.A; key != vswitch.Dropping {
			return key, x.Beside()
		}
		if key = "order"; q.Policy != nil {
			key = "policy"
		}
		return key, "drops frames, and " + x.Beside()
	}
	return "", ""
}

// has reports whether a queue has something, by the keys of vswitch.Exclusion.
func (q *Queue) has(key string) bool {
	switch key {
	case "order":
		return q.Order != nil
	case "policy":
		return q.Policy != nil
	case "shadow":
		return q.Shadow != nil
	case "admission":
		return q.Admission != nil
	case vswitch.Dropping:
		return scheduler.Drops(Serve(QueuePolicy(q.Order, "", nil, false), q.Policy, nil).Order)
	case "ecn":
		return q.ECN != nil
	case "pi":
		return q.PI != nil
	}
	return false
}

// serving calls visit with the queues that a policy serves, in the order of the ports
// of a switch. number counts those of one text at queues of one number: they are the
// ports of the policy.
func (s *Switch) serving(visit func(port int, q *Queue, number int)) {
	type key struct {
		queue int
		text  string
	}
	count := map[key]int{}
	for i := range s.Ports {
		of := s.QoS[s.Ports[i].QoS].Queues
		for k := range of {
			if q := &of[k]; q.Policy.on() {
				at := key{q.Queue, q.Policy.Text}
				visit(i, q, count[at])
				count[at]++
			}
		}
	}
}

// checkPorts returns what is wrong with the ports of the switch that a policy of
// several ports serves.
func (s *Switch) checkPorts(of *Queue, workers int) string {
	p, err := of.Policy.compile()
	if err != nil || len(p.Parts()) == 1 {
		return ""
	}
	var names []string
	used := map[int]bool{}
	s.serving(func(i int, q *Queue, _ int) {
		if q.Queue == of.Queue && q.Policy.Text == of.Policy.Text {
			names = append(names, s.Ports[i].name())
			used[s.Ports[i].worker(i, workers)] = true
		}
	})
	switch {
	case len(names) != len(p.Parts()):
		return fmt.Sprintf("has %d ports, and the switch has %d with it (%s): the first of those is its first port and so on; give it to as many", len(p.Parts()), len(names), strings.Join(names, ", "))
	case p.Spans() && len(used) > 1:
		return fmt.Sprintf("has a buffer over several ports, and %s are of %d workers: give them one (workers of ports)", strings.Join(names, ", "), len(used))
	}
	return ""
}

// First returns how a policy orders the queue pairs of a host (hostnic.Config.First),
// nil if none was written. processing of a packet is how many packets of its message
// are left.
func (p *Policy) First() (func(next, best *hostnic.Waiting) bool, error) {
	if !p.on() {
		return nil, nil
	}
	c, err := policy.CompileChooser("policy", p.Text)
	if err != nil {
		return nil, err
	}
	return func(next, best *hostnic.Waiting) bool {
		a, b := waiting(next), waiting(best)
		return c.Before(&a, &b)
	}, nil
}

func waiting(w *hostnic.Waiting) policy.Packet {
	return policy.Packet{Arrival: w.Since, Processing: int64(w.Left), Size: w.Size, Flow: w.QPN, Class: w.Class, DSCP: w.DSCP, TOS: w.DSCP << 2}
}

func (p *Policy) compile() (*policy.Program, error) {
	if p.Text == "" {
		return nil, fmt.Errorf("has neither file nor text")
	}
	return policy.Compile(cmp.Or(p.File, "text"), p.Text)
}

// inline reads the policies that a document names by file.
func (d decoder) inline(c *Config, from string, read func(string) ([]byte, error)) {
	for i := range c.Switches {
		for _, name := range keys(c.Switches[i].QoS) {
			q := c.Switches[i].QoS[name]
			for k := range q.Queues {
				at := fmt.Sprintf("switches[%d].qos.%s.queues[%d]", i, name, k)
				for key, p := range map[string]*Policy{"policy": q.Queues[k].Policy, "shadow": q.Queues[k].Shadow} {
					if p == nil {
						continue
					}
					if err := p.Read(from, read); err != nil {
						d.Fail(at+"."+key, "%s", err)
					}
				}
			}
		}
	}
}

// lossless reports whether frames of a lossless class wait in a queue.
func (s *Switch) lossless(queue int) bool {
	maps := s.Classes.Queue
	for _, c := range s.PFC.Classes {
		if maps == nil && c == queue || len(maps) == 8 && maps[c] == queue {
			return true
		}
	}
	return s.PFC.Pause
}
