package gfabric

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	keep         cli.Privileges
	set          []string

	taken []byte // record of one node that was taken out of that of a run; nil: none was
}

func replayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay RECORD|DIRECTORY [-- gswitch show ... | -- ghost show ...]",
		Short: "Replay what nodes or a whole run were given, to the bit, and look at any instant",
		Long: "replay makes the switch of a record anew (gswitch run --record, gswitch record start), or the\n" +
			"host (ghost run --record), and gives it what was recorded, in virtual time, as fast as it\n" +
			"goes. It compares a hash of all that it sends with that of the recorded run, and says that\n" +
			"they are identical, or at which step they are not. No root is needed, and no interface.\n\n" +
			"With --at or --until the replay ends there, and a verb of gswitch or ghost behind -- shows\n" +
			"the switch or the host as it was at that instant. Instants are since the beginning of the\n" +
			"record.\n\n" +
			"The record of a whole run on real frames (gfabric run --on netns) makes the run happen\n" +
			"again: all of its nodes, with the same frames at the same instants. A directory (gfabric up\n" +
			"--record, ghost run --record) is replayed as a network, its nodes side by side by their\n" +
			"common clock. --trace and --pcap are of all nodes then, --until adds up those of all nodes\n" +
			"that its label node leaves, and --node chooses the node that is shown.\n\n" +
			"--what-if and --set replay a node with another configuration and the same inputs, and say\n" +
			"what would have been different. With --minimise it looks for the fewest inputs with which\n" +
			"the event of --until still comes: flows (with --frames, single frames), congestion marks,\n" +
			"links, commands, allocations and checks of payload that fail. Both are of one node: of a\n" +
			"whole run --node chooses a switch or a host, to which comes what the others sent it.",
		Example: "  gfabric replay leaf1-20260102T030405.000Z.grec\n" +
			"  gfabric replay leaf1.grec --at 12.304s -- gswitch show queues\n" +
			"  gfabric replay leaf1.grec --until drop:queue-tail -- gswitch show buffer\n" +
			"  gfabric replay leaf1.grec --until 'drops > 10' -- gswitch show queues\n" +
			"  gfabric replay h1.grec --until 'timeouts > 0' -- ghost show flows\n" +
			"  gfabric replay leaf1.grec --trace 10.0.1.2:4791 --from 12.3s --to 12.31s\n" +
			"  gfabric replay leaf1.grec --pcap frames.pcapng --from 12.3s --to 12.31s\n" +
			"  gfabric replay leaf1.grec --what-if other.yaml\n" +
			"  gfabric replay leaf1.grec --set buffer.limit=400KB\n" +
			"  gfabric replay leaf1.grec --until drop:queue-tail --minimise\n" +
			"  gfabric replay leaf1.grec --serve 127.0.0.1:8080\n" +
			"  gfabric replay run.grec --at 300us --node s1 -- gswitch show queues\n" +
			"  gfabric replay run.grec --until 'drops{node=\"s1\"} > 0' --trace 10.0.0.2\n" +
			"  gfabric replay run.grec --node s1 --set switch.buffer.size=1MB\n" +
			"  gfabric replay run.grec --node s1 --until drop --minimise\n" +
			"  gfabric replay run.grec --node h1 --set hosts.transport.rto_low=1ms\n" +
			"  gfabric replay records/ --trace 10.0.0.2:5201 --to 3s",
		Args: func(c *cobra.Command, args []string) error {
			if n := c.ArgsLenAtDash(); n >= 0 {
				args = args[:n]
			}
			return one("the file of a record, or a directory of some")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args[0], args[1:], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.DurationVar(&f.at, "at", -1, "end the replay at this instant")
	fl.StringVar(&f.until, "until", "", "end the replay behind the call in which a frame is dropped (drop, drop:REASON), or after which a comparison holds, such as 'drops{node=\"s1\",reason=\"queue-tail\"} > 10' or 'queue_bytes{port=\"p1\",queue=\"3\"} > 100KB'")
	fl.StringVar(&f.whatIf, "what-if", "", "replay twice, as it was and with the configuration of this file, and say what would have been different")
	fl.StringArrayVar(&f.set, "set", nil, "path=value: replay twice, as it was and with this in the configuration of the node, as in buffer.limit=400KB; of a whole run a path of the scenario; may be repeated")
	fl.BoolVar(&f.minimise, "minimise", false, "print the fewest inputs with which what --until names still comes, none of which can be left out")
	fl.BoolVar(&f.frames, "frames", false, "minimise to single frames and marks, not to flows: many more replays")
	fl.BoolVar(&f.json, "json", false, "print what --trace (an object a line), --what-if, --set and --minimise find as JSON")
	fl.StringVar(&f.trace, "trace", "", "print what happens to each frame from or to ADDRESS or ADDRESS:PORT")
	fl.StringVar(&f.pcap, "pcap", "", "write the frames to this pcapng file: those that came, left and were dropped, headers only")
	fl.DurationVar(&f.from, "from", 0, "trace and pcap from this instant on")
	fl.DurationVar(&f.to, "to", -1, "end the replay, and with it trace and pcap, at this instant")
	fl.StringVar(&f.node, "node", "", "of several nodes, the one that a verb shows, or of which --what-if, --set and --minimise are")
	fl.StringVar(&f.serve, "serve", "", "show the record in the browser, with a slider for the instant, at an address such as "+defaultListen)
	f.keep.Flag(fl)
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
	if err := shows(words); err != nil {
		return err
	}
	var until *condition
	if f.until != "" {
		var err error
		if until, err = parseUntil(f.until); err != nil {
			return err
		}
	}
	alone := f.minimise || f.other()
	if err := f.fits(words); err != nil {
		return err
	}
	names, err := f.records(name)
	if err != nil {
		return err
	}
	if len(names) > 1 && (alone || f.serve != "") {
		return usagef("%s holds records of several nodes: choose one with --node, or name its file", name)
	}
	if name = names[0]; f.serve != "" {
		return f.site(ctx, name)
	}
	if alone {
		if err := f.take(ctx, name); err != nil {
			return err
		}
	}
	switch {
	case f.minimise:
		return f.minimised(ctx, name, until, stdout, stderr)
	case alone:
		return f.compare(ctx, name, end, stdout)
	case len(names) > 1:
		return f.several(ctx, names, until, end, words, stdout, stderr)
	}
	file, in, err := f.open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if in.Header.Kind == runner.RecordKind {
		return f.again(ctx, name, in, until, end, words, stdout, stderr)
	}
	if f.node != "" && f.node != in.Header.Name {
		return usagef("%s is of %s, not of --node %s", name, in.Header.Name, f.node)
	}
	p, err := f.player(in)
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
	l, err := newLookout(f, until, stdout)
	if err != nil {
		return err
	}
	r := newReplayed(l, p)
	began := time.Now()
	cut, err := ending(name, r.play(ctx, addTime(h.Start, end)))
	if err := errors.Join(err, l.close()); err != nil {
		return err
	}
	l.untraced(stderr)
	if until != nil && !r.stopped {
		return fmt.Errorf("%s: %s did not come up to the end, %v", name, f.until, (p.Now() - h.Start).Duration())
	}
	r.verdict(stderr, began, cut)
	if len(words) == 0 {
		return nil
	}
	return r.show(ctx, words, stdout, stderr)
}

// shows refuses what stands behind -- unless it is a verb that shows something.
func shows(words []string) error {
	if len(words) == 0 {
		return nil
	}
	if words[0] != "gswitch" && words[0] != "ghost" {
		return usagef("behind -- stands a verb of gswitch or ghost, as in -- gswitch show queues; %s is another program", words[0])
	}
	verb, _, err := commandsOf(words[0]).Find(words[1:])
	if err != nil {
		return usagef("behind --: %s", err)
	}
	for c := verb; c != nil; c = c.Parent() {
		if c.Name() == "show" {
			return nil
		}
	}
	return usagef("behind -- stands a verb that shows something, as in -- %s show %s; %q does something else, and a replay is no daemon", words[0],
		map[string]string{"gswitch": "queues", "ghost": "flows"}[words[0]], strings.Join(words, " "))
}

// commandsOf is the command line of gswitch or ghost.
func commandsOf(name string) *cobra.Command {
	if name == "ghost" {
		return ghost.Command(version)
	}
	return gswitch.Command(version)
}

// other reports whether a node is replayed with another configuration.
func (f *replayFlags) other() bool { return f.whatIf != "" || len(f.set) > 0 }

// fits refuses flags that make no sense together.
func (f *replayFlags) fits(words []string) error {
	looks := f.trace != "" || f.pcap != "" || len(words) > 0
	switch {
	case f.serve != "" && (f.at >= 0 || f.to >= 0 || f.until != "" || f.other() || looks || f.node != "" || f.minimise):
		return usagef("--serve shows all instants, and all nodes: it goes with --force alone")
	case f.minimise && f.until == "":
		return usagef("--minimise needs an event: name it with --until, such as --until drop:queue-tail")
	case f.minimise && (f.at >= 0 || f.from > 0 || f.other() || looks):
		return usagef("--minimise goes with --until, --to, --node, --frames, --json and --force alone")
	case f.frames && !f.minimise:
		return usagef("--frames is for --minimise")
	case f.json && !f.minimise && !f.other() && f.trace == "":
		return usagef("--json is for --trace, --what-if, --set and --minimise; verbs of gswitch and ghost have their own")
	case f.whatIf != "" && len(f.set) > 0:
		return usagef("--set changes the configuration of the record, --what-if names another one: give one of them")
	case f.other() && (f.until != "" || looks || f.from > 0):
		return usagef("--what-if and --set compare two replays from the beginning to --at: they go with --node, --json and --force alone")
	}
	return nil
}

// ending says how a replay came to an end: where the record does, and why; err is
// another error.
func ending(name string, why error) (cut string, err error) {
	lost, saved := replay.LostError{}, replay.SavedError{}
	switch {
	case errors.Is(why, io.EOF), why == nil:
		return "", nil
	case errors.Is(why, replay.ErrCut), errors.As(why, &lost), errors.As(why, &saved):
		return "; " + why.Error(), nil
	}
	return "", fmt.Errorf("%s: %w", name, why)
}

// sameness says what the hashes of a replay that came to its end say of it: one that is not what was
// recorded ends with an error.
func sameness(frames, sums uint64) string {
	switch {
	case frames == 0:
		return "nothing to compare: no frame was sent"
	case sums == 0:
		return "nothing to compare: the record has no hash of what was sent up to here"
	}
	return "identical"
}

// verdict says how far a replay came, and that it was what was recorded.
func (r *replayed) verdict(w io.Writer, began time.Time, cut string) {
	p, h := r.p, r.p.Header
	frames, sums := p.Sent()
	failed := ""
	if n := p.Failed(); n > 0 {
		failed = fmt.Sprintf(" %d allocations failed,", n)
	}
	fmt.Fprintf(w, "replayed %v of %s in %v: %d calls, %d frames sent,%s %d hashes compared: %s%s\n",
		(p.Now() - h.Start).Duration().Round(time.Microsecond), h.Name, time.Since(began).Round(time.Millisecond), p.Steps(), frames, failed, sums, sameness(frames, sums), cut)
	if c := h.Clock; c != nil {
		fmt.Fprintf(w, "when it began, its clock was %v ahead of the machine's, within %v of root %016x\n", time.Duration(c.Zero-h.Epoch), time.Duration(c.Eps), c.Root)
	}
}

// open opens a record.
func (f *replayFlags) open(name string) (io.Closer, *replay.Reader, error) {
	if f.taken != nil {
		in, err := replay.NewReader(bytes.NewReader(f.taken))
		return io.NopCloser(nil), in, err
	}
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
func (f *replayFlags) player(in *replay.Reader) (*replay.Player, error) {
	if programs[in.Header.Kind] == "" {
		return nil, fmt.Errorf("this is of a %s, which this program cannot replay", in.Header.Kind)
	}
	return replay.NewPlayer(in, func(h *replay.Header, pool *frame.Pool) (replay.Machine, error) {
		switch h.Kind {
		case "host":
			return host.Rebuild(h, pool)
		case runner.SwitchKind, runner.HostKind:
			return newRunNode(h, nil, pool)
		}
		return control.Rebuild(h, pool)
	})
}

// programs are those that show what records are of.
var programs = map[string]string{"switch": "gswitch", runner.SwitchKind: "gswitch", "host": "ghost", runner.HostKind: "ghost"}

// ofRun reports whether a record of a kind was taken out of that of a whole run.
func ofRun(kind string) bool { return kind == runner.SwitchKind || kind == runner.HostKind }

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
			if err == nil && next > end {
				r.reached = end
			}
			if err != nil || next > end {
				return err
			}
		}
		e, err := r.p.Step()
		if err != nil {
			return err
		}
		if e.Kind == replay.Transmit {
			r.left(e.At, e.Port, e.Frames)
		}
		if r.holds() {
			return nil
		}
	}
}

// show runs a verb of gswitch or ghost against the switch or host as it is now.
func (r *replayed) show(ctx context.Context, words []string, stdout, stderr io.Writer) error {
	handler, err := r.sw.Handler(r.p.Header, r.now())
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
	c := commandsOf(words[0])
	c.SetArgs(slices.Concat([]string{"--socket", socket}, words[1:]))
	c.SetOut(stdout)
	c.SetErr(stderr)
	err = c.ExecuteContext(ctx)
	stop()
	return errors.Join(err, <-served)
}
