package gswitch

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	"gswitch/policy"
	"gswitch/wholefile"
)

func (a *app) policyCommand() *cobra.Command {
	return cli.Group("policy", "Check, apply and watch policies of egress queues (OpenQueue, docs/POLICIES.md)", `  gswitch policy check gold.oq --cost
  gswitch policy apply gold.oq --port eth1
  gswitch policy show
  gswitch policy shadow other.oq --port eth1
  gswitch policy rollback --port eth1
  gswitch policy trace gold.oq --pcap in.pcap --rate 1Gbps`,
		a.policyCheck(), a.policyApply(), a.policyDiff(), a.policyRollback(), a.policyShow(), a.policyShadow(), policyTrace())
}

// readPolicy reads and checks a policy; "-" is standard input.
func readPolicy(c *cobra.Command, file string) (*policy.Program, string, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = wholefile.All("standard input", c.InOrStdin(), policy.MaxText)
	} else {
		text, err = wholefile.Read(file, policy.MaxText)
	}
	if err != nil {
		return nil, "", cli.Input(err)
	}
	p, err := policy.Compile(file, string(text))
	if err != nil {
		return nil, "", cli.Input(err)
	}
	return p, string(text), nil
}

// costQueued is how many packets wait when the cost of a policy is measured.
const costQueued = 1024

func (a *app) policyCheck() *cobra.Command {
	var cost bool
	c := &cobra.Command{Use: "check FILE...", Short: "Check policies, and show how queues are kept and what a packet costs",
		Long: `Read policies and verify them: types, orders that are none, overflow, drops that
would never end. Printed is how each queue is kept and what a packet costs at
most with ` + fmt.Sprint(costQueued) + ` of them queued; --cost measures it here, too.`,
		Example: "  gswitch policy check gold.oq\n  gswitch policy check gold.oq --cost\n  gswitch policy check - < gold.oq",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, files []string) error {
			type report struct {
				File       string   `json:"file"`
				Structures []string `json:"structures"`
				Warnings   []string `json:"warnings,omitempty"`
				BoundNs    int      `json:"bound_ns"`
				MeasuredNs int      `json:"measured_ns,omitempty"`
			}
			var reports []report
			for _, file := range files {
				p, _, err := readPolicy(c, file)
				if err != nil {
					return err
				}
				r := report{File: file, Structures: p.Describe(), BoundNs: p.Bound(costQueued)}
				for _, w := range p.Warnings {
					r.Warnings = append(r.Warnings, w.Error())
				}
				if cost {
					r.MeasuredNs = measured(p)
				}
				reports = append(reports, r)
			}
			if a.json {
				return cli.PrintValue(c.OutOrStdout(), reports)
			}
			w := c.OutOrStdout()
			for _, r := range reports {
				for _, line := range r.Structures {
					fmt.Fprintf(w, "%s: %s\n", r.File, line)
				}
				fmt.Fprintf(w, "%s: about %d ns a packet at most, with %d queued", r.File, r.BoundNs, costQueued)
				if cost {
					fmt.Fprintf(w, "; measured %d", r.MeasuredNs)
				}
				fmt.Fprintln(w)
				for _, line := range r.Warnings {
					fmt.Fprintf(w, "warning: %s\n", line)
				}
			}
			return nil
		}}
	c.Flags().BoolVar(&cost, "cost", false, "run packets through it, and say how long one takes")
	return c
}

// measured returns how many ns a packet takes in and out of a policy, the least of
// some rounds: what else the machine does only adds.
func measured(p *policy.Program) int {
	best := time.Duration(1 << 62)
	part := p.Parts()[0]
	for _, other := range p.Parts() {
		if other.Bound(costQueued) > part.Bound(costQueued) {
			part = other
		}
	}
	for range 7 {
		e := part.NewEngine(1, 10e9)
		const packets = 20000
		began := time.Now()
		for i := range uint32(packets) {
			d := uint8(i * 2654435761 >> 26)
			e.Offer(&policy.Packet{Size: 64 + i*7919%1437, DSCP: d, TOS: d << 2, Class: d >> 3, Flow: i * 2654435761, Rank: int64(i * 40503 % 65536)})
			for e.Victim() != nil {
			}
			if e.Len() > costQueued {
				e.Take()
			}
		}
		best = min(best, time.Since(began)/packets)
	}
	return int(best)
}
