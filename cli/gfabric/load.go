package gfabric

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	"gswitch/control/privilege"
	"gswitch/fabric/load"
)

func loadCommand() *cobra.Command {
	return cli.Group("load", "Put traffic on a network and measure it, from inside of hosts",
		"  gfabric exec h2 -- gfabric load serve\n"+
			"  gfabric exec h1 -- gfabric load stream h2",
		serveCommand(), streamCommand(), requestCommand(), pingCommand())
}

func serveCommand() *cobra.Command {
	var listen string
	var keep cli.Privileges
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Answer the stream and request tests of others",
		Example: "  gfabric exec h2 -- gfabric load serve",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			context.AfterFunc(c.Context(), func() { l.Close() })
			if err := keep.Drop(slog.Default(), privilege.Need{}); err != nil {
				return err
			}
			fmt.Fprintf(&stdout, "ready on %s\n", l.Addr())
			return load.Serve(l, func(err error) { say("%v", err) })
		},
	}
	c.Flags().StringVar(&listen, "listen", ":"+load.DefaultPort, "address to listen on")
	keep.Flag(c.Flags())
	return c
}

// withPort adds the port where servers listen, unless address has one.
func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), load.DefaultPort)
}

func streamCommand() *cobra.Command {
	var o load.StreamOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "stream ADDRESS",
		Short: "Send over TCP as fast as it goes; the content is checked",
		Long:  "stream sends over TCP to a gfabric load serve as fast as it goes, and compares\nwhat arrived with what was sent.",
		Example: "  gfabric exec h1 -- gfabric load stream h2\n" +
			"  gfabric exec h1 -- gfabric load stream h2 --streams 4 --time 5s --dscp 46",
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			o.Address = withPort(args[0])
			r, err := load.Stream(c.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(r)
			}
			fmt.Fprintf(&stdout, "%s: %d bytes in %.2f s over %d streams, %.1f Mb/s, checksums match\n", r.Address, r.Bytes, r.Seconds, len(r.Streams), r.BitsPerSecond/1e6)
			return nil
		},
	}
	c.Flags().DurationVar(&o.Time, "time", 10*time.Second, "how long to send")
	c.Flags().Uint64Var(&o.Bytes, "bytes", 0, "stop after so many bytes per stream; 0: by time alone")
	c.Flags().IntVar(&o.Streams, "streams", 1, "parallel connections")
	c.Flags().IntVar(&o.DSCP, "dscp", 0, "code point of what is sent, 0 to 63")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func requestCommand() *cobra.Command {
	var o load.RequestOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "request ADDRESS",
		Short: "Measure the time between requests and responses over TCP",
		Long:  "request asks a gfabric load serve and measures how long each answer takes.",
		Example: "  gfabric exec h1 -- gfabric load request h2\n" +
			"  gfabric exec h1 -- gfabric load request h2 --interval 5ms --json",
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			o.Address = withPort(args[0])
			l, err := load.Requests(c.Context(), o)
			if err != nil {
				return err
			}
			return writeLatency(l, asJSON)
		},
	}
	c.Flags().DurationVar(&o.Time, "time", 10*time.Second, "how long to ask")
	c.Flags().DurationVar(&o.Interval, "interval", 0, "time between requests; 0: as soon as the last is answered")
	c.Flags().IntVar(&o.Request, "request", 64, "bytes of a request")
	c.Flags().IntVar(&o.Response, "response", 64, "bytes of a response")
	c.Flags().IntVar(&o.DSCP, "dscp", 0, "code point of the requests, 0 to 63; responses bear it where net.ipv4.tcp_reflect_tos is 1")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func pingCommand() *cobra.Command {
	var o load.PingOptions
	var asJSON bool
	var only4, only6 bool
	c := &cobra.Command{
		Use:   "ping ADDRESS",
		Short: "Send ICMP echo requests; exit code 1 if an answer is missing",
		Example: "  gfabric exec h1 -- gfabric load ping h2\n" +
			"  gfabric exec h1 -- gfabric load ping --count 100 --interval 10ms fd00::3",
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			o.Address = args[0]
			switch {
			case only4:
				o.Version = 4
			case only6:
				o.Version = 6
			}
			l, err := load.Ping(c.Context(), o)
			if err != nil && (o.Count > 0 || c.Context().Err() == nil) {
				return err
			}
			if err := writeLatency(l, asJSON); err != nil {
				return err
			}
			if l.Lost > 0 || l.Count == 0 {
				return errors.New("answers are missing")
			}
			return nil
		},
	}
	c.Flags().BoolVarP(&only4, "ipv4", "4", false, "use the name's IPv4 address")
	c.Flags().BoolVarP(&only6, "ipv6", "6", false, "use the name's IPv6 address")
	c.MarkFlagsMutuallyExclusive("ipv4", "ipv6")
	c.Flags().IntVar(&o.Count, "count", 3, "requests to send; 0: until it is interrupted")
	c.Flags().DurationVar(&o.Interval, "interval", 100*time.Millisecond, "time between requests")
	c.Flags().DurationVar(&o.Timeout, "timeout", time.Second, "time to wait for each answer")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func writeLatency(l *load.Latency, asJSON bool) error {
	if asJSON {
		return writeJSON(l)
	}
	if l.Count == 0 {
		_, err := fmt.Fprintf(&stdout, "%s: 0 answered, %d lost\n", l.Address, l.Lost)
		return err
	}
	_, err := fmt.Fprintf(&stdout, "%s: %d answered, %d lost; min %.0f, p50 %.0f, p90 %.0f, p99 %.0f, p99.9 %.0f, max %.0f us\n",
		l.Address, l.Count, l.Lost, l.Min, l.P50, l.P90, l.P99, l.P999, l.Max)
	return err
}
