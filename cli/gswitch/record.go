package gswitch

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/table"
	"gswitch/units"
)

func (a *app) recordCommand() *cobra.Command {
	var last string
	var on []string
	verb := func(use, short, long string, action api.RecordRequest_Action) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Long: long, Args: cli.Args(cobra.NoArgs), RunE: func(c *cobra.Command, _ []string) error {
			client, address, err := a.client()
			if err != nil {
				return err
			}
			r := &api.RecordRequest{Action: action, Switch: a.sw, On: on}
			if len(on) > 0 && last == "" {
				return cli.Usage(errors.New("--on goes with --last: what goes to a file as it comes is there already"))
			}
			if last != "" {
				if r.Last, err = units.Bytes.Whole(last, 1<<62); err != nil {
					return cli.Usage(fmt.Errorf("--last: %w", err))
				}
			}
			m, err := client.Record(c.Context(), r)
			if err != nil {
				return control.Explain(address, err)
			}
			if a.json {
				return cli.PrintJSON(c.OutOrStdout(), m)
			}
			printRecordings(c.OutOrStdout(), m)
			return nil
		}}
	}
	start := verb("start", "Begin to record", `Record the switch, or all, from now on: the record begins with an image of the switch, for
which it stands still for some milliseconds.

With --last the last inputs are kept in memory, and go to a file of their own when record save,
a signal SIGUSR1 to the daemon, or an event of --on asks for one.`, api.RecordRequest_START)
	start.Flags().StringVar(&last, "last", "", "keep the last inputs in this much memory, as in 64MiB")
	start.Flags().StringSliceVar(&on, "on", nil, "with --last, write a file at these events: drop, drop:REASON, pause-storm")
	c := cli.Group("record", "Record what a switch is given, so that gfabric replay does it again",
		"  gswitch run -c switch.yaml --record /var/lib/gswitch/records\n  gswitch record start\n  gswitch record start --last 64MiB --on drop,pause-storm\n  gswitch record status\n  gswitch record stop",
		start,
		verb("stop", "End the records", "End the records of the switch, or of all. Forwarding goes on.", api.RecordRequest_STOP),
		verb("save", "Write out what was recorded up to now", "Write out what was recorded up to now, without waiting for the next second: to the file of the record, or what is kept (--last) to one of its own. The records go on.", api.RecordRequest_SAVE),
		verb("status", "What is recorded, and where", "", api.RecordRequest_STATUS))
	c.Long = `Everything that a switch is given is recorded: frames (headers only), instants,
links, commands, allocations that failed. gfabric replay does the same again in virtual time, to
the bit, with every show verb at every instant. Bulk traffic costs less than a byte a frame.

Records lie in the directory that run --record names, else in ` + control.RecordDir + `. They can be
read by their owner alone.`
	return c
}

func printRecordings(w io.Writer, m *api.Recordings) {
	if len(m.Recordings) == 0 {
		fmt.Fprintln(w, "nothing is recorded; gswitch record start begins")
		return
	}
	t := table.New("SWITCH", "STATE", ">UP TO", ">CALLS", ">SIZE", "FILE")
	for _, r := range m.Recordings {
		state := "on"
		if !r.On {
			state = r.Ended
		}
		t.Row(r.Switch, state, time.Duration(r.Seconds*1e9).Round(time.Millisecond), r.Steps, size(r.Bytes), r.File)
	}
	t.Print(w)
}
