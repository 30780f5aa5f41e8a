package cli

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/table"
)

// Watch are the flags of the verb that watches the rates of ports.
type Watch struct {
	interval time.Duration
	count    int
}

// Flags adds the flags.
func (k *Watch) Flags(c *cobra.Command) {
	c.Flags().DurationVarP(&k.interval, "interval", "i", time.Second, "time between reports")
	c.Flags().IntVarP(&k.count, "count", "n", 0, "end after so many reports")
}

// Check says what is wrong with the flags.
func (k *Watch) Check() error {
	if k.interval < 50*time.Millisecond {
		return Usage(fmt.Errorf("--interval %v is below 50ms", k.interval))
	}
	return nil
}

// Run shows the reports of a stream that open begins: of a terminal in place,
// else and as JSON one after the other. address is the daemon's, for messages.
func (k *Watch) Run(c *cobra.Command, json bool, address string, open func(ctx context.Context, intervalMs uint32) (*connect.ServerStreamForClient[api.Ports], error)) error {
	ctx, stop := signal.NotifyContext(c.Context(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	stream, err := open(ctx, uint32(k.interval.Milliseconds()))
	if err != nil {
		return control.Explain(address, err)
	}
	defer stream.Close()
	screen := isTerminal(c.OutOrStdout()) && !json
	// The first report has no rates yet: there is nothing before it.
	for n := 0; (k.count == 0 || n <= k.count) && stream.Receive(); n++ {
		switch {
		case n == 0:
		case json:
			if err := PrintJSON(c.OutOrStdout(), stream.Msg()); err != nil {
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
}

// ANSI: cursor to the top left; clear to the end of the screen.
const (
	home       = "\x1b[H"
	clearBelow = "\x1b[J"
)

func printRates(w io.Writer, ports []*api.Port, screen bool) {
	name := Namer(ports)
	t := table.New("PORT", ">RX PPS", ">RX BIT/S", ">TX PPS", ">TX BIT/S", ">DROPS/S", ">DROPS", "STATE")
	for _, p := range ports {
		t.Row(name(p.Switch, p.Name), si(p.RxFramesPerSecond), si(p.RxBitsPerSecond), si(p.TxFramesPerSecond), si(p.TxBitsPerSecond), si(p.DropsPerSecond), p.Drops, p.State)
	}
	if screen {
		fmt.Fprint(w, home+clearBelow)
	}
	t.Print(w)
	if !screen {
		fmt.Fprintln(w)
	}
}
