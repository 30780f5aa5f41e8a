package gfabric

import (
	"os"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	"gswitch/fabric/demo"
	"gswitch/fabric/lab"
)

func demoFabricCommand() *cobra.Command {
	o := demo.Options{Out: os.Stdout, Log: say, Rate: demo.DefaultRate}
	var gswitch, rate string
	c := &cobra.Command{
		Use:   "fabric",
		Short: "Raise a leaf-spine fabric, ping across it, load it with TCP, show what happens, remove it",
		Example: "  gfabric demo fabric\n" +
			"  gfabric demo fabric --time 30s --rate 20Mbps",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if rate != "" {
				if err := o.Rate.UnmarshalText([]byte(rate)); err != nil {
					return usagef("--rate: %w", err)
				}
			}
			if err := checkPoll(o.Poll); err != nil {
				return err
			}
			if o.Gswitch, err = lab.FindGswitch(gswitch); err != nil {
				return err
			}
			if o.Self, err = os.Executable(); err != nil {
				return err
			}
			return demo.Run(c.Context(), o)
		},
	}
	c.Flags().StringVar(&o.Name, "name", "demo", "name of the fabric")
	c.Flags().StringVar(&rate, "rate", "", "emulated speed of links between switches ("+demo.DefaultRate.String()+" if left out); those of hosts are twice as fast")
	c.Flags().DurationVar(&o.Duration, "time", demo.DefaultDuration, "how long to load the fabric")
	c.Flags().StringVar(&o.Poll, "poll", "adaptive", "how the switches wait for frames: spin, adaptive or sleep")
	c.Flags().StringVar(&gswitch, "gswitch", "", "the gswitch to run; the one beside gfabric, or in PATH, if left out")
	return c
}
