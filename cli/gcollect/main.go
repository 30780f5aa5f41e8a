// Package gcollect is the command gcollect: the collector of what switches report,
// and the verbs that show what it found.
package gcollect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"gswitch/collect"
	"gswitch/control/cli"
	"gswitch/natsserver"
	"gswitch/table"
)

// version is the program's, which Main gets.
var version = "unknown"

// Main runs gcollect by the arguments of the process and returns its exit code. The
// version is the program's own.
func Main(v string) int { return cli.Main(context.Background(), Command(v)) }

// Command returns the tree of commands, for manual pages and completions.
func Command(v string) *cobra.Command {
	version = v
	return newRoot()
}

// DataDir is where streams are by default.
const DataDir = "/var/lib/gcollect"

// app is what every verb needs.
type app struct {
	data  string
	nats  string
	login natsserver.Login
	json  bool
}

func newRoot() *cobra.Command {
	a := &app{}
	root := cli.Root(&cobra.Command{
		Use:   "gcollect",
		Short: "The collector of what switches report",
		Long: `gcollect takes what switches report and the copies that they make of packets, keeps
it in a stream of NATS JetStream, and finds what happened: which link lost which
packets and why, which packets were dropped, looped or did not arrive, which
flows are lost, which port paused which.

"gcollect run" is the collector, with a NATS server of its own. Several of them share
the work over an external cluster (--nats). The other verbs show what was found.`,
		Example: `  gcollect run --fabric leaf-spine:2,4,2
  gcollect events --follow
  gcollect status
  gcollect run --nats nats://10.9.0.1:4222,nats://10.9.0.2:4222
  gcollect clock run --fabric leaf-spine:2,4,2`,
	}, version)
	f := root.PersistentFlags()
	f.StringVar(&a.data, "data", DataDir, "directory of the streams, and of the name of this collector")
	f.StringVar(&a.nats, "nats", "", "URLs of a NATS cluster with JetStream that has the streams, in place of the server in gcollect run")
	f.StringVar(&a.login.Creds, "creds", "", "with --nats: file with NATS credentials")
	f.StringVar(&a.login.Token, "token-file", "", "with --nats: file with the token of the servers, or with USER:PASSWORD")
	f.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.runCommand(), a.eventsCommand(), a.exportCommand(), a.statusCommand(), a.suspectsCommand(), a.marksCommand(), a.countCommand(), a.showCommand(), a.clockCommand(), cli.Version("gcollect", version, "Version of this program"))
	return root
}

// store opens the streams of a collector that runs. The caller closes the
// connection.
func (a *app) store(ctx context.Context) (*collect.Store, *nats.Conn, error) {
	nc, err := collect.Dial(a.nats, a.login, a.data)
	if err != nil {
		return nil, nil, err
	}
	s, err := collect.Find(ctx, nc)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return s, nc, nil
}

// asked returns what the streams of a collector that runs answer to one question.
func asked[T any](ctx context.Context, a *app, question func(*collect.Store, context.Context) (T, error)) (answer T, err error) {
	s, nc, err := a.store(ctx)
	if err != nil {
		return answer, err
	}
	defer nc.Close()
	return question(s, ctx)
}

// report shows what was answered to a request, or says why that was refused.
func report[T any](c *cobra.Command, a *app, refused string, answer T, show func(io.Writer, T)) error {
	switch {
	case refused != "":
		return fmt.Errorf("refused: %s", refused)
	case a.json:
		return printJSON(c.OutOrStdout(), answer)
	}
	show(c.OutOrStdout(), answer)
	return nil
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show who collects, what is kept, and how far it is analysed",
		Long: `status shows the collectors that run, what the streams hold, how far each lane of
reports is analysed and by which collector, and the last report of each exporter.`,
		Example: "  gcollect status\n  gcollect status --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			st, err := asked(c.Context(), a, (*collect.Store).State)
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(c.OutOrStdout(), st)
			}
			showState(c.OutOrStdout(), st)
			return nil
		},
	}
}

func showState(w io.Writer, st *collect.State) {
	t := table.New("STREAM", ">MESSAGES", ">BYTES", "FIRST", "LAST")
	t.Row("reports", st.Reports.Messages, st.Reports.Bytes, instant(st.Reports.First), instant(st.Reports.Last))
	t.Row("events", st.Events.Messages, st.Events.Bytes, instant(st.Events.First), instant(st.Events.Last))
	t.Print(w)
	fmt.Fprintln(w)
	t = table.New(">LANE", "COLLECTOR", "ANALYSED UP TO", ">BEHIND")
	for _, l := range st.Lanes {
		t.Row(l.Lane, l.Owner, instant(l.At), l.Behind)
	}
	t.Print(w)
	if len(st.Exporters) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = table.New("EXPORTER", ">LAST REPORT", "AT")
	for _, e := range st.Exporters {
		t.Row(e.Name, e.Report, instant(e.At))
	}
	t.Print(w)
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05.000")
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
