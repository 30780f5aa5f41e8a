package gfabric

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"gswitch/cc"
	"gswitch/control/cli"
	"gswitch/fabric/lab"
	"gswitch/fabric/transparent"
)

func transparentCommand() *cobra.Command {
	o := transparent.Options{Log: say, Rate: transparent.DefaultRate}
	var gswitch, rate string
	var asJSON bool
	c := &cobra.Command{
		Use:   "transparent",
		Short: "Load kernel hosts with TCP, bare and behind ghosts as bumps in the wire, and compare",
		Long: `transparent raises two spines, four leaves and eight hosts twice, and loads them
with TCP of the hosts' own kernels: one stream on the idle fabric, then four
streams to one host with requests beside. The first time hosts are as they are;
the second, every one is behind a ghost that carries its packets in paced
channels (docs/TRANSPARENT.md). It prints both, and removes everything.`,
		Example: "  gfabric transparent\n" +
			"  gfabric transparent --rate 100Mbps --base-rtt 5ms --time 30s\n" +
			"  gfabric transparent --cc dctcp --json > report.json",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if rate != "" {
				if err := o.Rate.UnmarshalText([]byte(rate)); err != nil {
					return usagef("--rate: %w", err)
				}
			}
			switch {
			case o.Rate == 0:
				return usagef("--rate: a ghost paces: give a rate, such as 40Mbps")
			case o.Duration < 3*time.Second:
				return usagef("--time: %v is too short; 3s and more are possible", o.Duration)
			case o.BaseRTT <= 0 || o.BaseRTT > time.Second:
				return usagef("--base-rtt: %v is not between 0s and 1s", o.BaseRTT)
			}
			if _, err := cc.Factory(o.Congestion, o.Options); err != nil {
				return usagef("--cc: %w", err)
			}
			if o.Gswitch, err = lab.FindGswitch(gswitch); err != nil {
				return err
			}
			if o.Self, err = os.Executable(); err != nil {
				return err
			}
			if o.Ghost, err = findGhost(o.Self); err != nil {
				return err
			}
			r, err := transparent.Run(c.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(c.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
			return r.Write(c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.Name, "name", "transparent", "name of the fabric")
	f.StringVar(&rate, "rate", "", "emulated speed of all links ("+transparent.DefaultRate.String()+" if left out)")
	f.DurationVar(&o.BaseRTT, "base-rtt", transparent.DefaultBaseRTT, "T of congestion control")
	f.StringVar(&o.Congestion, "cc", "hpcc", "congestion control of channels")
	f.StringToStringVar(&o.Options, "cc-option", nil, "option of it, as name=value (repeat)")
	f.DurationVar(&o.Duration, "time", transparent.DefaultDuration, "how long to load the fabric")
	f.StringVar(&gswitch, "gswitch", "", "the gswitch to run; the one beside gfabric, or in PATH, if left out")
	f.BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// findGhost returns the ghost beside this program, or the one in PATH.
func findGhost(self string) (string, error) {
	beside := filepath.Join(filepath.Dir(self), "ghost")
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	path, err := exec.LookPath("ghost")
	if err != nil {
		return "", errors.New("there is no ghost beside gfabric or in PATH; build it with make build")
	}
	return path, nil
}
