package main

import (
	"fmt"
	"io"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/api"
)

func (a *app) watchCommand() *cobra.Command {
	var interval time.Duration
	var count int
	c := &cobra.Command{
		Use:   "watch",
		Short: "Watch the rates of the ports",
		Long: `Show the rates of all ports, again and again. On a terminal the picture is
refreshed in place; else, and with --json, one report follows the other.`,
		Example: "  gswitch watch\n  gswitch watch -i 200ms\n  gswitch watch -n 3 --json",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < 50*time.Millisecond {
				return usageError{fmt.Errorf("--interval %v is below 50ms", interval)}
			}
			client, address, err := a.client()
			if err != nil {
				return err
			}
			// A stream has no deadline; whether anybody answers is found out before.
			if _, err := client.GetVersion(c.Context(), &api.GetVersionRequest{}); err != nil {
				return control.Explain(address, err)
			}
			ctx, stop := signal.NotifyContext(c.Context(), unix.SIGINT, unix.SIGTERM)
			defer stop()
			stream, err := client.Watch(ctx, &api.WatchRequest{Switch: a.sw, IntervalMs: uint32(interval.Milliseconds())})
			if err != nil {
				return control.Explain(address, err)
			}
			defer stream.Close()
			screen := isTerminal(c.OutOrStdout()) && !a.json
			// The first report has no rates yet: there is nothing before it.
			for n := 0; (count == 0 || n <= count) && stream.Receive(); n++ {
				switch {
				case n == 0:
				case a.json:
					if err := printJSON(c, stream.Msg()); err != nil {
						return err
					}
				default:
					printRates(c.OutOrStdout(), stream.Msg().Ports, screen)
				}
			}
			if err := stream.Err(); err != nil && ctx.Err() == nil {
				return control.Explain(address, err)
			}
			return nil
		},
	}
	c.Flags().DurationVarP(&interval, "interval", "i", time.Second, "time between reports")
	c.Flags().IntVarP(&count, "count", "n", 0, "end after so many reports")
	return c
}

// ANSI: cursor to the top left; clear to the end of the screen.
const (
	home       = "\x1b[H"
	clearBelow = "\x1b[J"
)

func printRates(w io.Writer, ports []*api.Port, screen bool) {
	name := namer(ports)
	t := newTable("PORT", ">RX PPS", ">RX BIT/S", ">TX PPS", ">TX BIT/S", ">DROPS/S", ">DROPS", "STATE")
	for _, p := range ports {
		t.row(name(p.Switch, p.Name), si(p.RxFramesPerSecond), si(p.RxBitsPerSecond), si(p.TxFramesPerSecond), si(p.TxBitsPerSecond), si(p.DropsPerSecond), p.Drops, p.State)
	}
	if screen {
		fmt.Fprint(w, home+clearBelow)
	}
	t.print(w)
	if !screen {
		fmt.Fprintln(w)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
