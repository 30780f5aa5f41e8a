package gfabric

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gswitch/cli/ghost"
	"gswitch/cli/gswitch"
	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/control/host"
	runner "gswitch/fabric/run"
	"gswitch/frame"
	"gswitch/replay"
)

type replayFlags struct {
	at, from, to time.Duration
	until        string
	whatIf       string
	pcap         string
	trace        string
	node         string
	force        bool
	minimise     bool
	frames       bool
	json         bool
	serve        string
}

func replayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay RECORD [-- gswitch show ... | -- ghost show ...]",
		Short: "Replay what a switch or a host was given, to the bit, and look at it at any instant",
		Long: "replay makes the switch of a record anew (gswitch run --record, gswitch record start), or the\n" +
			"host (ghost run --record), and gives it what was recorded, in virtual time, as fast as it\n" +
			"goes. It compares a hash of all that it sends with that of the recorded run, and says that\n" +
			"they are identical, or at which step they are not. No root is needed, and no interface.\n\n" +
			"With --at or --until the replay ends there, and a verb of gswitch or ghost behind -- shows\n" +
			"the switch or the host as it was at that instant. Instants are since the beginning of the\n" +
			"record.\n\n" +
			"With --minimise it looks for the fewest inputs with which the event of --until still comes:\n" +
			"flows (with --frames, single frames), congestion marks, links, commands, allocations and\n" +
			"checks of payload that fail.\n\n" +
			"The record of a whole run on real frames (gfabric run --on netns) makes the run happen\n" +
			"again: all of its nodes, with the same frames at the same instants. --node chooses the\n" +
			"switch that is shown.",
		Example: "  gfabric replay leaf1-20260102T030405.000Z.grec\n" +
			"  gfabric replay leaf1.grec --at 12.304s -- gswitch show queues\n" +
			"  gfabric replay leaf1.grec --until drop:queue-tail -- gswitch show buffer\n" +
			"  gfabric replay leaf1.grec --until 'drops > 10' -- gswitch show queues\n" +
			"  gfabric replay h1.grec --until 'timeouts > 0' -- ghost show flows\n" +
			"  gfabric replay leaf1.grec --what-if other.yaml\n" +
			"  gfabric replay leaf1.grec --until drop:queue-tail --minimise\n" +
			"  gfabric replay run.grec --at 300us --node s1 -- gswitch show queues\n" +
			"  gfabric replay leaf1.grec --serve 127.0.0.1:8080\n" +
			"  gfabric replay leaf1.grec --trace 10.0.1.2:4791 --from 12.3s --to 12.31s\n" +
			"  gfabric replay leaf1.grec --pcap frames.pcapng --from 12.3s --to 12.31s",
		Args: func(c *cobra.Command, args []string) error {
			if n := c.ArgsLenAtDash(); n >= 0 {
				args = args[:n]
			}
			return one("the file of a record")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args[0], args[1:], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.DurationVar(&f.at, "at", -1, "end the replay at this instant")
	fl.StringVar(&f.until, "until", "", "end the replay behind the call in which a frame is dropped (drop, drop:REASON), or after which a comparison holds, such as 'drops{reason=\"queue-tail\"} > 10' or 'queue_bytes{port=\"p1\",queue=\"3\"} > 100KB'")
	fl.StringVar(&f.whatIf, "what-if", "", "replay twice, as it was and with the configuration of this file, and say what would have been different")
	fl.BoolVar(&f.minimise, "minimise", false, "print the fewest inputs with which what --until names still comes, none of which can be left out")
	fl.BoolVar(&f.frames, "frames", false, "minimise to single frames and marks, not to flows: many more replays")
	fl.BoolVar(&f.json, "json", false, "print what --minimise finds as JSON")
	fl.StringVar(&f.trace, "trace", "", "print what happens to each frame from or to ADDRESS or ADDRESS:PORT")
	fl.StringVar(&f.pcap, "pcap", "", "write the frames to this pcapng file: those that came, left and were dropped, headers only")
	fl.DurationVar(&f.from, "from", 0, "trace and pcap from this instant on")
	fl.DurationVar(&f.to, "to", -1, "end the replay, and with it trace and pcap, at this instant")
	fl.StringVar(&f.node, "node", "", "of the record of a whole run, the switch that a verb of gswitch shows")
	fl.StringVar(&f.serve, "serve", "", "show the record in the browser, with a slider for the instant, at an address such as "+defaultListen)
	fl.BoolVar(&f.force, "force", false, "replay a record of another build, which may differ")
	for _, name := range []string{"at", "to"} {
		fl.Lookup(name).DefValue = "the end"
	}
	return c
}

func (f *replayFlags) run(ctx context.Context, name string, words []string, stdout, stderr io.Writer) error {
	end := frame.Never
	for _, t := range []time.Duration{f.at, f.to} {
		if t >= 0 {
			end = min(end, frame.Time(t))
		}
	}
	if len(words) > 0 && words[0] != "gswitch" && words[0] != "ghost" {
		return usagef("behind -- stands a verb of gswitch or ghost, as in -- gswitch show queues; %s is another program", words[0])
	}
	var until *condition
	if f.until != "" {
		var err error
		if until, err = parseUntil(f.until); err != nil {
			return err
		}
	}
	if f.serve != "" {
		if f.at >= 0 || f.to >= 0 || f.until != "" || f.whatIf != "" || f.trace != "" || f.pcap != "" || f.node != "" || f.minimise || len(words) > 0 {
			return usagef("--serve shows all instants, and all nodes: it goes with --force alone")
		}
		return f.site(ctx, name)
	}
	if f.minimise {
		if f.until == "" {
			return usagef("--minimise needs an event: name it with --until, such as --until drop:queue-tail")
		}
		if f.at >= 0 || f.from > 0 || f.whatIf != "" || f.trace != "" || f.pcap != "" || f.node != "" || len(words) > 0 {
			return usagef("--minimise goes with --until, --to, --frames, --json and --force alone")
		}
		return f.minimised(ctx, name, until, stdout, stderr)
	}
	if f.frames || f.json {
		return usagef("--frames and --json are for --minimise")
	}
	if f.whatIf != "" {
		if f.until != "" || f.trace != "" || f.pcap != "" || len(words) > 0 {
			return usagef("--what-if compares two replays from the beginning to --at: it goes with nothing else")
		}
		return f.compare(ctx, name, end, stdout)
	}
	file, in, err := f.open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if in.Header.Kind == runner.RecordKind {
		return f.again(ctx, name, in, end, words, stdout, stderr)
	}
	if f.node != "" {
		return usagef("--node is for records of whole runs, this is of a %s", in.Header.Kind)
	}
	p, err := player(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	h := p.Header
	if len(words) > 0 && words[0] != programs[h.Kind] {
		return usagef("%s is of a %s, which is shown by %s", name, h.Kind, programs[h.Kind])
	}
	if until != nil {
		if err := until.fits(h.Kind); err != nil {
			return err
		}
	}
	r := &replayed{flags: f, p: p, sw: p.Node.(replayable), out: bufio.NewWriter(stdout), from: h.Start + frame.Time(f.from), until: until}
	defer r.out.Flush()
	if err := r.watch(); err != nil {
		return err
	}
	began := time.Now()
	err = r.play(ctx, addTime(h.Start, end))
	if closed := r.close(); closed != nil {
		return closed
	}
	var cut string
	lost, saved := replay.LostError{}, replay.SavedError{}
	switch {
	case errors.Is(err, io.EOF), err == nil:
	case errors.Is(err, replay.ErrCut), errors.As(err, &lost), errors.As(err, &saved):
		cut = "; " + err.Error()
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
	if f.until != "" && !r.stopped {
		return fmt.Errorf("%s: %s did not come up to the end, %v", name, f.until, (p.Now() - h.Start).Duration())
	}
	frames, sums := p.Sent()
	failed := ""
	if n := p.Failed(); n > 0 {
		failed = fmt.Sprintf(" %d allocations failed,", n)
	}
	fmt.Fprintf(stderr, "replayed %v of %s in %v: %d calls, %d frames sent,%s %d hashes compared: identical%s\n",
		(p.Now() - h.Start).Duration().Round(time.Microsecond), h.Name, time.Since(began).Round(time.Millisecond), p.Steps(), frames, failed, sums, cut)
	if c := h.Clock; c != nil {
		fmt.Fprintf(stderr, "when it began, its clock was %v ahead of the machine's, within %v of root %016x\n", time.Duration(c.Zero-h.Epoch), time.Duration(c.Eps), c.Root)
	}
	if len(words) == 0 {
		return nil
	}
	r.out.Flush()
	return r.show(ctx, words, stdout, stderr)
}

// open opens a record.
func (f *replayFlags) open(name string) (io.Closer, *replay.Reader, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, cli.Input(err)
	}
	in, err := replay.NewReader(bufio.NewReaderSize(file, 1<<20))
	if err == nil && in.Header.Build != version && !f.force {
		err = fmt.Errorf("this was recorded by gswitch %s (%s), this is %s: another build may do something else; replay it with that one, or try with --force", in.Header.Build, in.Header.Go, version)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
	}
	return file, in, nil
}

// player makes what a record is of.
func player(in *replay.Reader) (*replay.Player, error) {
	if programs[in.Header.Kind] == "" {
		return nil, fmt.Errorf("this is of a %s, of which this program knows nothing", in.Header.Kind)
	}
	return replay.NewPlayer(in, func(h *replay.Header, pool *frame.Pool) (replay.Machine, error) {
		if h.Kind == "host" {
			return host.Rebuild(h, pool)
		}
		return control.Rebuild(h, pool)
	})
}

// programs are those that show what records are of.
var programs = map[string]string{"switch": "gswitch", "host": "ghost"}

// replayable is what a record is of.
type replayable interface {
	// Ports returns the names of the ports by their numbers.
	Ports() map[uint16]string
	// Handler serves the API of a daemon that runs it, as it is.
	Handler(h *replay.Header, at frame.Time) (http.Handler, error)
}

func addTime(a, b frame.Time) frame.Time {
	if b > frame.Never-a {
		return frame.Never
	}
	return a + b
}

// play replays up to an instant, or to what is looked for.
func (r *replayed) play(ctx context.Context, end frame.Time) error {
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if end != frame.Never {
			next, err := r.p.Peek()
			if err != nil || next > end {
				return err
			}
		}
		e, err := r.p.Step()
		if err != nil {
			return err
		}
		if e.Kind == replay.Transmit && len(e.Frames) > 0 {
			r.left(e)
		}
		if c := r.until; c != nil && !c.drop {
			r.stopped = c.holds(c.in(r.sw))
		}
		if r.stopped {
			return nil
		}
	}
}

// show runs a verb of gswitch or ghost against the switch or host as it is now.
func (r *replayed) show(ctx context.Context, words []string, stdout, stderr io.Writer) error {
	handler, err := r.sw.Handler(r.p.Header, r.p.Now())
	if err != nil {
		return err
	}
	return shown(ctx, handler, words, stdout, stderr)
}

// shown runs a verb of gswitch or ghost against an API.
func shown(ctx context.Context, handler http.Handler, words []string, stdout, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "gfabric-replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- control.Serve(serving, handler, []net.Listener{l}, new(control.Clients)) }()
	c := gswitch.Command(version)
	if words[0] == "ghost" {
		c = ghost.Command(version)
	}
	c.SetArgs(slices.Concat([]string{"--socket", socket}, words[1:]))
	c.SetOut(stdout)
	c.SetErr(stderr)
	err = c.ExecuteContext(ctx)
	stop()
	return errors.Join(err, <-served)
}
