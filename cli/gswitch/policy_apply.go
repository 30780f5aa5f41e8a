package gswitch

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
)

// place names an egress queue.
type place struct {
	ports []string
	queue int
}

func (p *place) flags(c *cobra.Command) {
	c.Flags().StringSliceVar(&p.ports, "port", nil, "port of the switch; of a policy of several ports all that it serves, as in eth1,eth2")
	c.Flags().IntVar(&p.queue, "queue", 0, "egress queue of the port, 0 to 7")
	_ = c.MarkFlagRequired("port")
}

// editQueue changes what the document in force says of a queue, and applies it.
func (a *app) editQueue(c *cobra.Command, at place, dry bool, change func(q *config.Queue) error) (*api.ApplyResponse, error) {
	if at.queue < 0 || at.queue > 7 {
		return nil, cli.Usage(fmt.Errorf("there is no queue %d: queues are 0 to 7", at.queue))
	}
	if len(at.ports) == 0 {
		return nil, cli.Usage(errors.New("--port names no port"))
	}
	for i, port := range at.ports {
		if slices.Contains(at.ports[:i], port) {
			return nil, cli.Usage(fmt.Errorf("--port names %s twice", port))
		}
	}
	client, address, err := a.client()
	if err != nil {
		return nil, err
	}
	m, err := client.GetConfig(c.Context(), &api.GetConfigRequest{})
	if err != nil {
		return nil, control.Explain(address, err)
	}
	doc, err := config.Parse("running", []byte(m.Yaml))
	if err != nil {
		return nil, err
	}
	for _, port := range at.ports {
		q, err := a.queueOf(doc, port, at.queue)
		if err != nil {
			return nil, cli.Input(err)
		}
		if err := change(q); err != nil {
			return nil, cli.Input(fmt.Errorf("queue %d of port %s: %w", at.queue, port, err))
		}
	}
	r, err := client.Apply(c.Context(), &api.ApplyRequest{Yaml: string(doc.YAML()), File: "the policy", DryRun: dry})
	return r, control.Explain(address, err)
}

// queueOf returns a queue of the profile of a port, in a profile that is the port's
// alone.
func (a *app) queueOf(doc *config.Config, port string, queue int) (*config.Queue, error) {
	var ports []string
	for i := range doc.Switches {
		s := &doc.Switches[i]
		if a.sw != "" && s.Name != a.sw {
			continue
		}
		for k := range s.Ports {
			p := &s.Ports[k]
			name := p.Name
			if name == "" {
				name = p.Interface
			}
			if name != port {
				ports = append(ports, name)
				continue
			}
			return queueIn(s, ownProfile(s, p, name), queue), nil
		}
	}
	return nil, fmt.Errorf("there is no port %s; there are %s", port, strings.Join(ports, ", "))
}

// ownProfile returns the profile of a port, a copy of it where others have it, too.
func ownProfile(s *config.Switch, p *config.Port, name string) string {
	shared := 0
	for i := range s.Ports {
		if s.Ports[i].QoS == p.QoS {
			shared++
		}
	}
	if p.QoS != "" && shared == 1 {
		return p.QoS
	}
	profile := s.QoS[p.QoS]
	profile.Queues = slices.Clone(profile.Queues)
	own := "port-" + name
	for k := 2; ; k++ {
		if _, taken := s.QoS[own]; !taken {
			break
		}
		own = fmt.Sprintf("port-%s-%d", name, k)
	}
	s.QoS = maps.Clone(s.QoS)
	if s.QoS == nil {
		s.QoS = map[string]config.QoS{}
	}
	s.QoS[own] = profile
	p.QoS = own
	return own
}

func queueIn(s *config.Switch, profile string, number int) *config.Queue {
	q := s.QoS[profile]
	i := slices.IndexFunc(q.Queues, func(q config.Queue) bool { return q.Queue == number })
	if i < 0 {
		q.Queues = append(q.Queues, config.Queue{Queue: number})
		i = len(q.Queues) - 1
		s.QoS[profile] = q
	}
	return &q.Queues[i]
}

func (a *app) policyApply() *cobra.Command {
	var at place
	var dry bool
	c := &cobra.Command{Use: "apply FILE --port PORT", Short: "Apply a policy to an egress queue",
		Long: `Check a policy and make it that of an egress queue of a running switch. Frames
that wait leave first, in the order that they came under; none is lost or
overtaken. The text before is kept for rollback. Where several ports share the
profile of the port, it gets a copy of its own. A policy of several ports is
applied to as many at once; the first of them in the document of the switch is
the first of the policy, and so on.`,
		Example: "  gswitch policy apply gold.oq --port eth1\n  gswitch policy apply shared.oq --port eth1,eth2,eth3\n  gswitch policy apply gold.oq --port eth1 --queue 3 --dry-run",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, w []string) error {
			p, text, err := readPolicy(c, w[0])
			if err != nil {
				return err
			}
			for _, warning := range p.Warnings {
				fmt.Fprintln(c.ErrOrStderr(), "warning:", warning)
			}
			r, err := a.editQueue(c, at, dry, func(q *config.Queue) error { setPolicy(q, text); return nil })
			if err != nil {
				return err
			}
			return cli.Applied(c.OutOrStdout(), r, a.json)
		}}
	at.flags(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would change")
	return c
}

func setPolicy(q *config.Queue, text string) {
	old := ""
	if q.Policy != nil {
		if old = q.Policy.Text; old == text {
			return
		}
	}
	q.Policy = &config.Policy{Text: text, Previous: old}
}

func (a *app) policyRollback() *cobra.Command {
	var at place
	c := &cobra.Command{Use: "rollback --port PORT", Short: "Bring back the policy before",
		Long:    "Make the text that gswitch policy apply replaced that of the queue again. A second rollback takes the first one back.",
		Example: "  gswitch policy rollback --port eth1",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := a.editQueue(c, at, false, func(q *config.Queue) error {
				if q.Policy == nil || q.Policy.Previous == "" {
					return fmt.Errorf("there is no policy before the one in force")
				}
				setPolicy(q, q.Policy.Previous)
				return nil
			})
			if err != nil {
				return err
			}
			return cli.Applied(c.OutOrStdout(), r, a.json)
		}}
	at.flags(c)
	return c
}

func (a *app) policyDiff() *cobra.Command {
	var at place
	c := &cobra.Command{Use: "diff FILE --port PORT", Short: "Show what a policy would change",
		Long:    "Check a policy and show the lines in which it differs from the one of a queue, without a change.",
		Example: "  gswitch policy diff gold.oq --port eth1",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, w []string) error {
			_, text, err := readPolicy(c, w[0])
			if err != nil {
				return err
			}
			var olds []string
			_, err = a.editQueue(c, at, true, func(q *config.Queue) error {
				old := ""
				if q.Policy != nil {
					old = q.Policy.Text
				}
				olds = append(olds, old)
				setPolicy(q, text)
				return nil
			})
			if err != nil {
				return err
			}
			for i, old := range olds {
				if len(olds) > 1 {
					fmt.Fprintf(c.OutOrStdout(), "port %s:\n", at.ports[i])
				}
				if old == text {
					fmt.Fprintln(c.OutOrStdout(), "nothing changes")
				}
				printDiff(c.OutOrStdout(), strings.Split(strings.TrimSuffix(old, "\n"), "\n"), strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
			}
			return nil
		}}
	at.flags(c)
	return c
}

// printDiff writes the lines that go and come, by the longest common subsequence.
func printDiff(w io.Writer, a, b []string) {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if n[i][j] = max(n[i+1][j], n[i][j+1]); a[i] == b[j] {
				n[i][j] = n[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && n[i+1][j] >= n[i][j+1]:
			fmt.Fprintln(w, "-", a[i])
			i++
		default:
			fmt.Fprintln(w, "+", b[j])
			j++
		}
	}
}

func (a *app) policyShadow() *cobra.Command {
	var at place
	var off bool
	c := &cobra.Command{Use: "shadow [FILE] --port PORT", Short: "Run a policy beside an egress queue, on what comes to it",
		Long: `Let a policy see all that comes to an egress queue, without touching it: what it
would have sent and dropped over a link of the port's rate that it has for
itself is in gswitch policy show. --off ends it.`,
		Example: "  gswitch policy shadow other.oq --port eth1\n  gswitch policy show\n  gswitch policy shadow --off --port eth1",
		Args:    cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, w []string) error {
			if off == (len(w) == 1) {
				return cli.Usage(fmt.Errorf("shadow what? Name a file, or write --off"))
			}
			text := ""
			if !off {
				var err error
				if _, text, err = readPolicy(c, w[0]); err != nil {
					return err
				}
			}
			r, err := a.editQueue(c, at, false, func(q *config.Queue) error {
				if q.Shadow = nil; text != "" {
					q.Shadow = &config.Policy{Text: text}
				}
				return nil
			})
			if err != nil {
				return err
			}
			return cli.Applied(c.OutOrStdout(), r, a.json)
		}}
	at.flags(c)
	c.Flags().BoolVar(&off, "off", false, "end the shadow of the queue")
	return c
}
