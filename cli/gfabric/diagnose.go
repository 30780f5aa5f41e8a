package gfabric

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/deter"
	"gswitch/frame"
	"gswitch/table"
	"gswitch/wholefile"
)

// diagnoseFlags say what is reported of connections.
type diagnoseFlags struct {
	held, slow time.Duration
	window     float64
	all, trace bool
	only       string
	from, to   time.Duration
}

func diagnoseCommand() *cobra.Command {
	var f diagnoseFlags
	c := &cobra.Command{
		Use:   "diagnose FILE|DIR",
		Short: "Replay recorded connections of TCP alone, and say what went wrong in each",
		Long: "diagnose replays connections of TCP from their records, without the network, compares a\n" +
			"hash of every packet that they send with that of the run, and says for each message what\n" +
			"cost it time: a retransmission timeout and why it came to that, a loss that was found\n" +
			"late, an acknowledgement that was held back, a closed window. Runs of scenarios record\n" +
			"with measure.connections, to the directory connections of their results.\n\n" +
			"Of a capture (.pcapng, .pcap) it says what packets show, of any TCP: which\n" +
			"were sent again, after a timeout, or arrived late; duplicate\n" +
			"acknowledgements, closed windows. That is an analysis, and not a replay. A direction that\n" +
			"was captured at several points counts at the first.",
		Example: "  gfabric run scenarios/deter/zero-window.yaml\n" +
			"  gfabric diagnose results/zero-window/connections\n" +
			"  gfabric diagnose results/zero-window/connections --slow 10ms --all\n" +
			"  gfabric diagnose results/zero-window/connections/slow.gtcp --trace --to 2ms\n" +
			"  gfabric diagnose slow-iperf3.pcapng --only 10.0.0.1",
		Args: one("the file of a record, or a directory of them"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.OutOrStdout(), args[0]) },
	}
	c.Flags().DurationVar(&f.held, "held", 20*time.Millisecond, "report acknowledgements that were held back for at least this long")
	c.Flags().Float64Var(&f.window, "window", 0.5, "report a closed window that held a message back for at least this share of its time")
	c.Flags().DurationVar(&f.slow, "slow", 0, "report slow start or congestion for messages that took at least this long without another cause; 0: for none")
	c.Flags().BoolVar(&f.all, "all", false, "list messages in which nothing went wrong, too")
	c.Flags().StringVar(&f.only, "only", "", "only connections whose name contains this, such as 'h1 49153'")
	c.Flags().BoolVar(&f.trace, "trace", false, "print every step of both ends in place of a diagnosis: packets, timers, calls, and the windows behind each")
	c.Flags().DurationVar(&f.from, "from", 0, "trace from this instant on")
	c.Flags().DurationVar(&f.to, "to", 1<<62, "trace up to this instant")
	c.Flags().Lookup("to").DefValue = "the end"
	return c
}

// steps prints what both ends of a connection did, each in its order.
func (f *diagnoseFlags) steps(w io.Writer, logs []*deter.Log) error {
	if _, err := fmt.Fprintf(w, "%s\n", logs[0].Name); err != nil {
		return err
	}
	t := table.New("AT", "END", "EVENT", "PACKET", "SEQ", "LEN", "ACK", "FLAGS", "CWND", "FLIGHT", "PEER WINDOW", "UNSENT", "RTT", "RTO")
	_, err := deter.Replay(logs, func(s *deter.Step) {
		at := s.At.Duration()
		if at < f.from || at > f.to {
			return
		}
		packet := "\t\t\t\t"
		if s.Seg != nil {
			packet = fmt.Sprintf("%d\t%d\t%d\t%d\t%v", s.ID, s.Seg.Seq, s.Seg.Len, s.Seg.Ack, s.Seg.Flags)
		} else if s.N > 0 {
			packet = fmt.Sprintf("\t\t%d\t\t", s.N)
		}
		c := s.Conn
		t.Rowf("%v\t%d\t%v\t%s\t%d\t%d\t%d\t%d\t%v\t%v", at, s.End, s.Kind, packet, c.Window(), c.InFlight(), c.PeerWindow(), c.Unsent(), c.RTT().Duration(), c.RTO().Duration())
	})
	return errors.Join(err, t.Print(w))
}

func (f *diagnoseFlags) run(out io.Writer, path string) error {
	if isCapture(path) {
		return f.analyse(out, path)
	}
	replayed, messages, wrong := 0, 0, 0
	if f.trace {
		err := eachConnection(path, func(logs []*deter.Log) error {
			if !strings.Contains(logs[0].Name, f.only) {
				return nil
			}
			replayed++
			return f.steps(out, logs)
		})
		return mistake(err)
	}
	t := table.New("CONNECTION", "GROUP", "AT", "BYTES", "TOOK", "CAUSE", "LASTED", "WHY")
	visit := func(logs []*deter.Log) error {
		if !strings.Contains(logs[0].Name, f.only) {
			return nil
		}
		d, err := deter.Diagnose(logs, deter.Rules{Held: frame.Time(f.held), Window: f.window, Slow: frame.Time(f.slow)})
		if diverged := new(deter.Diverged); errors.As(err, &diverged) && logs[0].Build != version {
			return fmt.Errorf("%w; the record is of build %s, and this is %s: replay it with that one", err, logs[0].Build, version)
		} else if err != nil {
			return err
		}
		replayed++
		messages += len(d.Intervals)
		for i := range d.Intervals {
			if len(d.Intervals[i].Findings) > 0 {
				wrong++
			}
			f.write(t, logs[0], &d.Intervals[i])
		}
		return nil
	}
	if err := eachConnection(path, visit); err != nil {
		return mistake(err)
	}
	if replayed == 0 {
		return inputf("%s has no records of such connections: scenarios make them with measure.connections", path)
	}
	if err := t.Print(out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d connections replayed, all packets identical; something went wrong in %d of %d messages\n", replayed, wrong, messages)
	return err
}

// write adds a message, with what delayed it.
func (f *diagnoseFlags) write(t *table.Table, l *deter.Log, v *deter.Interval) {
	head := fmt.Sprintf("%s\t%s\t%v\t%d\t%v", l.Name, l.Group, v.From.Duration(), v.Bytes, (v.To - v.From).Duration())
	if len(v.Findings) == 0 && f.all {
		t.Rowf("%s\t-\t\t", head)
	}
	for _, x := range v.Findings {
		t.Rowf("%s\t%s\t%v\t%s", head, x.Cause, x.Lasted.Duration(), x.Why)
	}
}

// eachConnection calls visit with the records of each connection of a file or of
// the .gtcp files of a directory.
func eachConnection(path string, visit func(logs []*deter.Log) error) error {
	return filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || file != path && filepath.Ext(file) != ".gtcp" {
			return err
		}
		b, err := wholefile.ReadPlain(file, 1<<30)
		if err != nil {
			return err
		}
		for len(b) > 0 {
			var logs []*deter.Log
			if logs, b, err = deter.ReadLogs(b); err == nil {
				err = visit(logs)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		return nil
	})
}
