package ghost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/table"
)

func (a *app) tcpCommand() *cobra.Command {
	return cli.Group("tcp", "Connections of TCP of a host: standard input goes out, what comes goes to standard output", `  ghost tcp connect 10.0.0.2:80
  ghost tcp connect 10.0.0.2:5001 < file
  ghost tcp listen 9000 > file`, a.connectCommand(), a.listenCommand())
}

func (a *app) connectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "connect ADDRESS:PORT",
		Short: "Open a connection, send standard input, print what comes",
		Long: `connect opens a connection of TCP from the host to another one, which may run
any system, and is its two ends for a shell: what is read from standard input is
sent, the end of it closes that direction, and what comes is printed. It ends
when both directions are closed and all is acknowledged. The document of the host
needs the section tcp.`,
		Example: `  ghost tcp connect 10.0.0.2:5001 < file
  printf 'GET / HTTP/1.0\r\n\r\n' | ghost tcp connect 10.0.0.2:80
  ghost tcp connect 10.0.0.2:9000 --host h1 --json < file > answer`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if to, err := netip.ParseAddrPort(args[0]); err != nil || to.Port() == 0 {
				return cli.Usage(fmt.Errorf("%q is not an address and a port; write 10.0.0.2:80", args[0]))
			}
			return a.carry(c, &api.StreamRequest{Host: a.host, To: args[0]})
		},
	}
}

func (a *app) listenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "listen PORT",
		Short: "Wait for one connection, print what comes, send standard input",
		Long: `listen waits for a connection to a port of the host, and then is one end
of the connection as connect is. Services that stay are in the document of the
host, in its section tcp.`,
		Example: `  ghost tcp listen 9000 > file
  ghost tcp listen 9000 < file`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			port, err := strconv.ParseUint(args[0], 10, 16)
			if err != nil || port == 0 {
				return cli.Usage(fmt.Errorf("%q is not a port between 1 and 65535", args[0]))
			}
			return a.carry(c, &api.StreamRequest{Host: a.host, Listen: uint32(port)})
		},
	}
}

// carry is the two ends of a connection for a shell.
func (a *app) carry(c *cobra.Command, r *api.StreamRequest) error {
	client, address, err := a.client(c.Context())
	if err != nil {
		return err
	}
	r.Host = a.host
	ctx, stop := context.WithCancelCause(c.Context())
	defer stop(nil)
	in, err := client.Stream(ctx, r)
	if err != nil {
		return control.Explain(address, err)
	}
	defer in.Close()
	done, number := (*api.StreamReport)(nil), uint64(0)
	for in.Receive() {
		m := in.Msg()
		switch {
		case m.Done:
			done = m
		case m.Stream != nil:
			number = m.Stream.Number
			go send(ctx, stop, client, a.host, number, c.InOrStdin())
		case m.Eof && terminal(c.InOrStdin()):
			// No key press is asked for.
			if err := closeWrite(ctx, client, a.host, number); err != nil {
				return control.Explain(address, err)
			}
		}
		if _, err := c.OutOrStdout().Write(m.Data); err != nil {
			return err
		}
	}
	switch err := in.Err(); {
	case done != nil:
		return a.carried(c, done)
	case context.Cause(ctx) != nil && c.Context().Err() == nil:
		return context.Cause(ctx)
	case c.Context().Err() != nil:
		return errors.New("interrupted")
	case err != nil:
		return control.Explain(address, err)
	}
	return errors.New("the host went away before the connection was closed")
}

// most is how many bytes of standard input are sent at once.
const most = 256 << 10

// send sends what is read to the end, which closes the direction.
func send(ctx context.Context, stop context.CancelCauseFunc, client api.HostClient, host string, number uint64, from io.Reader) {
	b := make([]byte, most)
	for {
		n, err := from.Read(b)
		if n > 0 {
			if _, err := client.WriteStream(ctx, &api.WriteStreamRequest{Host: host, Number: number, Data: b[:n]}); err != nil {
				return // the connection has ended, as its stream shows
			}
		}
		if errors.Is(err, io.EOF) {
			_ = closeWrite(ctx, client, host, number) // as well
			return
		}
		if err != nil {
			stop(fmt.Errorf("standard input: %w", err))
			return
		}
	}
}

func closeWrite(ctx context.Context, client api.HostClient, host string, number uint64) error {
	_, err := client.WriteStream(ctx, &api.WriteStreamRequest{Host: host, Number: number, End: true})
	return err
}

// terminal reports whether somebody types what is read.
func terminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	s, err := f.Stat()
	return err == nil && s.Mode()&os.ModeCharDevice != 0
}

// carried says what a connection did that has ended.
func (a *app) carried(c *cobra.Command, m *api.StreamReport) error {
	s := m.Stream
	if a.json {
		if err := cli.PrintJSON(c.ErrOrStderr(), m); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.ErrOrStderr(), "%s to %s: sent %s, received %s, %d segments again, %s, round trip %s\n", s.Local, s.Remote, size(s.Acked), size(m.Received), s.Retransmitted,
			cli.Plural(int(s.Timeouts), "timeout"), cli.Span(s.Rtt))
	}
	if s.Error != "" {
		return errors.New(s.Error)
	}
	return nil
}

func printStreams(w io.Writer, m *api.TCPStreams) {
	of := ofHost(m.Streams)
	t := table.New("LOCAL", "REMOTE", "STATE", ">ACKED", ">IN FLIGHT", ">WINDOW", ">PEER WINDOW", ">RTT", ">RTO", ">SENT", ">AGAIN", ">TIMEOUTS")
	for _, s := range m.Streams {
		t.Row(of(s, s.Local), s.Remote, s.State, size(s.Acked), size(s.InFlight), size(s.Window), size(s.PeerWindow), cli.Span(s.Rtt), cli.Span(s.Rto), s.Sent, s.Retransmitted, s.Timeouts)
	}
	t.Print(w)
}
