package gfabric

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	"gswitch/fabric/lab"
	"gswitch/fabric/view"
)

func watchCommand() *cobra.Command {
	var interval time.Duration
	var count int
	var asJSON, plain bool
	c := &cobra.Command{
		Use:   "watch [NAME]",
		Short: "Watch the ports, queues and pauses of a fabric in the terminal",
		Long: "watch shows a fabric that gfabric up raised: what each port of a switch sends, its\n" +
			"queue now and at its deepest, and who is paused. On a terminal the picture is\n" +
			"refreshed in place, otherwise there is a line now and then; with --json one sample\n" +
			"follows the other, a line each. gfabric serve shows the same in the browser.",
		Example: "  gfabric watch\n" +
			"  gfabric watch ring -i 1s\n" +
			"  gfabric watch -n 1 --json | jq '.ports[] | select(.queue_bytes > 0)'",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if interval != 0 && interval < 50*time.Millisecond {
				return usagef("--interval: %v is below 50ms", interval)
			}
			if count < 0 {
				return usagef("--count: %d is negative", count)
			}
			src, err := openLab(args, interval)
			if err != nil {
				return err
			}
			defer src.Close()
			if !asJSON && count == 0 {
				return view.Terminal(c.Context(), os.Stdout, src, view.TerminalOptions{Every: interval, Plain: plain})
			}
			lines := json.NewEncoder(&stdout)
			for n := 0; count == 0 || n < count; n++ {
				s, err := src.Sample(c.Context())
				if c.Context().Err() != nil {
					return nil
				}
				if err != nil {
					return err
				}
				if asJSON {
					err = lines.Encode(s)
				} else {
					_, err = fmt.Fprintln(&stdout, view.Line(src.Layout(), s))
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().DurationVarP(&interval, "interval", "i", 0, "time between samples; 200ms, and 2s between lines, if left out")
	c.Flags().IntVarP(&count, "count", "n", 0, "end after so many samples")
	c.Flags().BoolVar(&asJSON, "json", false, "write samples as JSON, one a line")
	c.Flags().BoolVar(&plain, "plain", false, "lines in place of a picture")
	return c
}

// openLab reads the lab that is named, or the only one that there is.
func openLab(args []string, every time.Duration) (*view.LabSource, error) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	name, err := lab.Resolve(name)
	if err != nil {
		return nil, err
	}
	return view.Lab(name, every)
}
