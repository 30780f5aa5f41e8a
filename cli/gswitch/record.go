package gswitch

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
)

func (a *app) recordCommand() *cobra.Command {
	verb := func(use, short, long string, action api.RecordRequest_Action) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Long: long, Args: cli.Args(cobra.NoArgs), RunE: func(c *cobra.Command, _ []string) error {
			client, address, err := a.client()
			if err != nil {
				return err
			}
			m, err := client.Record(c.Context(), &api.RecordRequest{Action: action, Switch: a.sw})
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
	c := cli.Group("record", "Record what a switch is given, so that gfabric replay does it again",
		"  gswitch run -c switch.yaml --record /var/lib/gswitch/records\n  gswitch record start\n  gswitch record status\n  gswitch record stop",
		verb("start", "Begin to record", `Record the switch, or all. A record begins with a switch that nothing has
happened to, so the switch begins anew: what waits in its queues and what it has learned is
lost, its counters start from 0, and its ports are opened again. A daemon that was started
with --record does without that.`, api.RecordRequest_START),
		verb("stop", "End the records", "End the records of the switch, or of all. Forwarding goes on.", api.RecordRequest_STOP),
		verb("save", "Write out what was recorded up to now", "Write out what was recorded up to now, without waiting for the next second. The records go on.", api.RecordRequest_SAVE),
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
	t := cli.NewTable("SWITCH", "STATE", ">UP TO", ">CALLS", ">SIZE", "FILE")
	for _, r := range m.Recordings {
		state := "on"
		if !r.On {
			state = r.Ended
		}
		t.Row(r.Switch, state, time.Duration(r.Seconds*1e9).Round(time.Millisecond), r.Steps, size(r.Bytes), r.File)
	}
	t.Print(w)
}
