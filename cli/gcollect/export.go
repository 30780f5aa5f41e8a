package gcollect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/collect"
	"gswitch/collect/ipfix"
	"gswitch/control/cli"
	"gswitch/fabric/traces"
	"gswitch/wholefile"
)

func (a *app) exportCommand() *cobra.Command {
	c := cli.Group("export", "Give events to other programs: as Parquet files, or as flows of IPFIX",
		"  gcollect export parquet /srv/events\n  gcollect export ipfix 10.9.0.5:4739 --follow", a.parquetCommand(), a.ipfixCommand())
	c.Long = `export gives events to other programs. For ClickHouse and for
scripts, gcollect events --json prints them one a line.`
	return c
}

func (a *app) parquetCommand() *cobra.Command {
	var most int
	c := &cobra.Command{
		Use:   "parquet DIR",
		Short: "Write events to Parquet files",
		Long: `parquet writes all events that the files in a directory do not have yet. A file is
named after the first and the last event that it has, and is there when it is whole:
run it from time to time (systemd.timer(5), cron), and each event is written once.`,
		Example: `  gcollect export parquet /srv/events
  duckdb -c "SELECT link_or_switch, what, sum(packets) \
    FROM '/srv/events/*.parquet' GROUP BY ALL"`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if most < 1 {
				return cli.Usage(fmt.Errorf("--rows %d: a file has one row at least", most))
			}
			last, err := written(args[0])
			if err != nil {
				return err
			}
			w := &parquetFiles{dir: args[0], most: most}
			if err := a.each(c, collect.Filter{After: last}, w.add); err != nil {
				return err
			}
			if err := w.flush(); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s in %s\n", cli.Plural(w.events, "event"), cli.Plural(w.files, "file"))
			return nil
		},
	}
	c.Flags().IntVar(&most, "rows", 1_000_000, "most events of a file")
	return c
}

// row is an event in a Parquet file.
type row struct {
	ID       string    `parquet:"id"`
	Kind     string    `parquet:"kind,dict"`
	At       time.Time `parquet:"at,timestamp(nanosecond)"`
	Until    time.Time `parquet:"until,timestamp(nanosecond)"`
	Known    time.Time `parquet:"known,timestamp(nanosecond)"`
	What     string    `parquet:"what,dict"`
	Where    string    `parquet:"link_or_switch,dict"`
	Toward   string    `parquet:"toward,dict"`
	Reason   string    `parquet:"reason,dict"`
	Path     string    `parquet:"path,dict"`
	Times    string    `parquet:"times"`
	Src      string    `parquet:"src,dict"`
	Dst      string    `parquet:"dst,dict"`
	SrcPort  int32     `parquet:"src_port"`
	DstPort  int32     `parquet:"dst_port"`
	Protocol int32     `parquet:"protocol"`
	Packets  int64     `parquet:"packets"`
	Classes  int32     `parquet:"classes"`
}

func rowOf(e *collect.Event) row {
	r := row{ID: e.ID, Kind: e.Kind, At: e.At, Until: e.Until, Known: e.Known, What: e.What, Where: e.Where, Toward: e.Toward, Reason: e.Reason, Path: e.Path, Times: e.Times,
		SrcPort: int32(e.SrcPort), DstPort: int32(e.DstPort), Protocol: int32(e.Protocol), Packets: int64(e.Packets), Classes: int32(e.Classes)}
	if e.Known.IsZero() { // of an event that an earlier version found
		r.Known = time.Unix(0, 0).UTC()
	}
	if e.Src.IsValid() {
		r.Src, r.Dst = e.Src.String(), e.Dst.String()
	}
	return r
}

const parquetName = "events-%020d-%020d.parquet"

// written is the last event that the files of a directory have.
func written(dir string) (last uint64, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	files, err := fs.Glob(os.DirFS(dir), "events-*.parquet")
	for _, name := range files {
		var from, to uint64
		if n, _ := fmt.Sscanf(name, parquetName, &from, &to); n == 2 {
			last = max(last, to)
		}
	}
	return last, err
}

// parquetFiles writes events to files.
type parquetFiles struct {
	dir           string
	most          int
	rows          []row
	first, last   uint64
	files, events int
}

func (w *parquetFiles) add(e *collect.Event) error {
	if len(w.rows) == 0 {
		w.first = e.Seq
	}
	w.last = e.Seq
	if w.rows = append(w.rows, rowOf(e)); len(w.rows) < w.most {
		return nil
	}
	return w.flush()
}

// flush writes a file, which has its name when it is whole and on the disk.
func (w *parquetFiles) flush() error {
	if len(w.rows) == 0 {
		return nil
	}
	if err := wholefile.Write(filepath.Join(w.dir, fmt.Sprintf(parquetName, w.first, w.last)), 0o644, func(f io.Writer) error {
		p := parquet.NewGenericWriter[row](f, parquet.Compression(&parquet.Zstd))
		_, err := p.Write(w.rows)
		return errors.Join(err, p.Close())
	}); err != nil {
		return err
	}
	w.files++
	w.events += len(w.rows)
	w.rows = w.rows[:0]
	return nil
}

func (a *app) ipfixCommand() *cobra.Command {
	var f chosen
	var tcp bool
	var domain uint32
	c := &cobra.Command{
		Use:   "ipfix HOST:PORT",
		Short: "Send flows that lost packets to a collector of IPFIX",
		Long: `ipfix sends a record (RFC 7011) for each event about packets of a flow: addresses,
ports, protocol, droppedPacketDeltaCount, start and end, forwardingStatus, and link or
switch as interfaceName. Pauses are of no flow, and are left out.`,
		Example: `  gcollect export ipfix 10.9.0.5:4739 --follow
  gcollect export ipfix 127.0.0.1:4739 --tcp --since 1h`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			by, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			network, most := "udp", 1400
			if tcp {
				network, most = "tcp", 16384
			}
			conn, err := net.Dial(network, args[0])
			if err != nil {
				return err
			}
			defer conn.Close()
			ctx, stop := signal.NotifyContext(c.Context(), unix.SIGINT, unix.SIGTERM)
			defer stop()
			s := &sender{conn: conn, encoder: ipfix.Encoder{Domain: domain, Most: most}, again: !tcp}
			n, err := a.send(ctx, c, by, s)
			fmt.Fprintln(c.OutOrStdout(), cli.Plural(n, "flow"))
			return err
		},
	}
	f.add(c)
	c.Flags().BoolVar(&tcp, "tcp", false, "send over TCP in place of UDP")
	c.Flags().Uint32Var(&domain, "domain", 1, "observation domain ID")
	return c
}

// send sends events as they come. When none come for a moment what has gathered is sent.
func (a *app) send(ctx context.Context, c *cobra.Command, by collect.Filter, s *sender) (n int, err error) {
	events := make(chan ipfix.Flow, 256)
	done := make(chan error, 1)
	go func() {
		done <- a.each(c, by, func(e *collect.Event) error {
			if isLoss(e) {
				select {
				case events <- flowOf(e):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		close(events)
	}()
	for f := range events {
		v := []ipfix.Flow{f}
		for len(v) < 64 && len(events) > 0 {
			v = append(v, <-events)
		}
		if err := s.send(v); err != nil {
			return n, err
		}
		n += len(v)
	}
	return n, <-done
}

// isLoss reports whether an event is of packets of a flow that were lost.
func isLoss(e *collect.Event) bool {
	return e.Src.Is4() && e.Dst.Is4() && e.What != string(traces.Delivered)
}

func flowOf(e *collect.Event) ipfix.Flow {
	status := map[string]uint8{"congestion": ipfix.Congestion, "blackhole": ipfix.Unroutable, "loop": ipfix.BadTTL, "looped": ipfix.BadTTL}[e.What]
	if status == 0 {
		status = ipfix.Dropped
	}
	return ipfix.Flow{Src: e.Src, Dst: e.Dst, SrcPort: e.SrcPort, DstPort: e.DstPort, Protocol: e.Protocol, Dropped: e.Packets, First: e.At, Last: e.Until, Status: status, Where: e.Where}
}

// sender sends messages of IPFIX.
type sender struct {
	conn       net.Conn
	encoder    ipfix.Encoder
	again      bool // the template is sent from time to time: messages may be lost
	templateAt time.Time
}

// templateEvery is how often the template is sent over UDP (RFC 7011, section 8.4).
const templateEvery = time.Minute

func (s *sender) send(v []ipfix.Flow) error {
	for len(v) > 0 {
		now := time.Now()
		template := s.templateAt.IsZero() || s.again && now.Sub(s.templateAt) >= templateEvery
		b, n := s.encoder.Message(now, template, v)
		if template {
			s.templateAt = now
		}
		if _, err := s.conn.Write(b); err != nil {
			return err
		}
		v = v[n:]
	}
	return nil
}
