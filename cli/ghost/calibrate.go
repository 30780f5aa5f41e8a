package ghost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/table"
	"gswitch/units"
	"gswitch/wholefile"
)

// calibration is what was measured, and what follows from it. Times are in
// nanoseconds, rates in bit/s.
type calibration struct {
	Host      string        `json:"host"`
	LinkRate  uint64        `json:"link_rate"`
	Payload   uint32        `json:"payload"`
	Poll      string        `json:"poll"`
	ClockRead float64       `json:"clock_read"`
	Wake      spread        `json:"wake_up"`
	Peers     []peerSpread  `json:"peers"`
	Rates     []rateProbe   `json:"rates,omitempty"`
	CleanRate uint64        `json:"clean_rate,omitempty"` // 0: not measured, or none was clean
	Derived   derived       `json:"derived"`
	notes     []string      // for people
	doc       *config.Hosts // with what was derived
}

type spread struct {
	Count uint64 `json:"count"`
	Min   uint64 `json:"min"`
	P10   uint64 `json:"p10,omitempty"`
	P50   uint64 `json:"p50"`
	P99   uint64 `json:"p99"`
	Max   uint64 `json:"max"`
}

type peerSpread struct {
	Peer string `json:"peer"`
	spread
}

// rateProbe is one step of the sweep.
type rateProbe struct {
	Rate          uint64  `json:"rate"`
	Goodput       float64 `json:"goodput"`
	Retransmitted uint64  `json:"retransmitted"`
	RTT           uint64  `json:"rtt_p50"`
	Clean         bool    `json:"clean"`
	Why           string  `json:"why,omitempty"` // it is not
}

// derived are the settings that follow.
type derived struct {
	T       uint64 `json:"base_rtt"`
	RTOHigh uint64 `json:"timeout"`
	RTOLow  uint64 `json:"timeout_low"` // of IRN
	Cap     uint32 `json:"cap"`         // of IRN, packets
	BDP     uint64 `json:"bdp"`         // bytes
	Late    bool   `json:"late"`        // the machine's wake-ups come near a quarter of T
}

// Constants of what is derived.
const (
	// T is slightly above the round trip of the idle network (HPCC section 5.1
	// takes 9 us on its testbed and 13 us in simulation so). From the median:
	// the least can be too short, where a worker was interrupted between its
	// clock and its frames (docs/GHOST.md).
	aboveRTT = 1.05
	// RTO_high is a round trip through a switch whose buffer is full (IRN
	// section 4.1). Its network has 6 ports to a switch with 2 bandwidth-delay
	// products of buffer each: 12 T to drain, 320 us for T of 24 us.
	rtoHighTs = 13
	// No timer below this: processes wait for the processor as long.
	leastRTO = 20 * time.Millisecond
	// Lateness beyond this share of T shows in congestion control.
	lateShare = 4
)

// derive works out settings from the worst median round trip.
func (c *calibration) derive(h *config.Host) {
	worst := uint64(0)
	for _, p := range c.Peers {
		worst = max(worst, p.P50)
	}
	t := threeDigits(uint64(aboveRTT * float64(worst)))
	h.BaseRTT = config.BaseRTT(t)
	h.Timeout = units.Duration(threeDigits(max(rtoHighTs*t, uint64(leastRTO)) + 2*c.Wake.P99))
	low := h.Transport().RTOLow
	c.Derived = derived{T: t, RTOHigh: uint64(h.Timeout), RTOLow: uint64(low), Cap: h.Cap(), BDP: uint64(float64(h.Rate) / 8 * float64(t) / 1e9), Late: c.Wake.P99 > t/lateShare}
}

// threeDigits rounds up, so that people can read it.
func threeDigits(n uint64) uint64 {
	unit := uint64(1)
	for n/unit >= 1000 {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}

func (a *app) calibrateCommand() *cobra.Command {
	var o own
	var q calibrating
	c := &cobra.Command{
		Use:   "calibrate PEER...",
		Short: "Measure round trips, wake-ups and clean rates, and derive T and timeouts",
		Long: `Measure what congestion control and loss recovery must know of the network and
of this machine, and derive settings. The network should be idle meanwhile.

  round trip   of full frames to each peer; every running ghost answers
  wake-up      from the ring of the worker's bell to its loop; what a frame that
               arrives at an idle worker waits too
  clock        what reading the clock takes
  clean rate   the highest at which the first peer gets messages without loss, and
               without a median round trip above T by more than a quarter: there
               queues grow, or workers come late. The peer must serve

  base_rtt = 1.05 x the largest median round trip   (T, HPCC section 5.1)
  timeout  = 13 T, at least 20 ms, + 2 wake-ups     (RTO_high, IRN section 4.1)
  RTO_low  = 4 T, at least 1 ms                     (IRN section 4.1)
  cap      = rate x T / payload                     (BDP-FC, IRN section 3.2)

The lines to put into the configuration are printed; --write puts the whole
configuration in force, with them, into a file.`,
		Example: `  ghost calibrate 10.0.0.2 10.0.0.3
  ghost calibrate 10.0.0.2 --no-sweep --write host.yaml
  ghost calibrate --port veth0 --addr 10.0.0.1/24 10.0.0.2 --json`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, peers []string) error {
			if q.step <= 0 || q.probes < 10 {
				return cli.Usage(errors.New("--step must be positive, and --probes 10 at least"))
			}
			return o.with(c, a, func(ctx context.Context, client api.HostClient) error {
				q.a, q.client, q.say = a, client, c.ErrOrStderr()
				if a.json {
					q.say = io.Discard
				}
				r, err := q.calibrate(ctx, peers)
				if err != nil {
					return err
				}
				if q.file != "" {
					if err := wholefile.WriteBytes(q.file, 0o644, r.doc.YAML()); err != nil {
						return err
					}
				}
				if a.json {
					return cli.PrintValue(c.OutOrStdout(), r)
				}
				r.print(c.OutOrStdout())
				return nil
			})
		},
	}
	o.flags(c, true)
	f := c.Flags()
	f.Uint32VarP(&q.probes, "probes", "n", 200, "round trips to each peer, at most; fewer where they take longer than 2s together")
	f.DurationVar(&q.step, "step", 300*time.Millisecond, "how long each rate is tried")
	f.BoolVar(&q.noSweep, "no-sweep", false, "do not look for the highest clean rate")
	f.StringVar(&q.file, "write", "", "write the configuration in force, with what was derived, to this file")
	return c
}

// calibrating is a calibration under way.
type calibrating struct {
	a       *app
	client  api.HostClient
	say     io.Writer
	probes  uint32
	step    time.Duration
	noSweep bool
	file    string
}

func (q *calibrating) calibrate(ctx context.Context, peers []string) (*calibration, error) {
	h, doc, err := q.configured(ctx)
	if err != nil {
		return nil, err
	}
	r := &calibration{Host: h.Name, LinkRate: uint64(h.Rate), Payload: uint32(h.Payload), doc: doc}
	fmt.Fprintln(q.say, "wake-ups of the worker ...")
	p, err := q.client.Punctuality(ctx, &api.PunctualityRequest{Host: q.a.host})
	if err != nil {
		return nil, err
	}
	r.Poll, r.ClockRead = p.Poll, p.ClockRead
	r.Wake = spread{Count: p.Wake.Count, Min: p.Wake.Min, P50: p.Wake.P50, P99: p.Wake.P99, Max: p.Wake.Max}
	for _, peer := range peers {
		fmt.Fprintf(q.say, "round trips to %s ...\n", peer)
		s, err := q.roundTrips(ctx, peer, r.Payload)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", peer, err)
		}
		r.Peers = append(r.Peers, peerSpread{peer, s})
	}
	inForce := h.Timeout
	r.derive(h)
	if !q.noSweep {
		if err := q.sweep(ctx, r, peers[0]); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			r.notes = append(r.notes, fmt.Sprintf("no clean rate was measured: %v", err))
		}
		if inForce < h.Timeout && r.CleanRate < r.LinkRate {
			r.notes = append(r.notes, fmt.Sprintf("Rates were tried with the timeout in force, %v, which is below the one derived: frames may have been sent again that only were late.\nUse the lines above, and calibrate again.", inForce))
		}
	}
	return r, nil
}

// configured returns the configuration in force, and the host of it that was
// chosen.
func (q *calibrating) configured(ctx context.Context) (*config.Host, *config.Hosts, error) {
	m, err := q.client.GetConfig(ctx, &api.GetConfigRequest{})
	if err != nil {
		return nil, nil, err
	}
	doc, err := config.ParseHosts("the daemon's configuration", []byte(m.Yaml))
	if err != nil {
		return nil, nil, err
	}
	if q.a.host == "" && len(doc.Hosts) == 1 {
		return &doc.Hosts[0], doc, nil
	}
	if h := doc.Find(q.a.host); h != nil {
		return h, doc, nil
	}
	return nil, nil, cli.Usage(errors.New("the daemon runs several hosts: choose one with --host"))
}

// Bounds of what probing takes.
const (
	firstProbes  = 10
	probingTime  = 2 * time.Second
	probingSpace = time.Millisecond // between two probes
)

// roundTrips probes a peer with full frames.
func (q *calibrating) roundTrips(ctx context.Context, peer string, payload uint32) (spread, error) {
	var rtts []uint64
	probe := func(n uint32) error {
		_, err := q.a.move(ctx, q.client, &api.TransferRequest{To: peer, Operation: "ping", Size: uint64(payload), Count: n, Interval: uint64(probingSpace),
			Congestion: "none", Telemetry: "none", Class: -1}, func(s *api.TransferSample) {
			if s.Rtt > 0 {
				rtts = append(rtts, s.Rtt)
			}
		})
		return err
	}
	if err := probe(firstProbes); err != nil {
		return spread{}, err
	}
	if len(rtts) == 0 {
		return spread{}, errors.New("no round trip was measured")
	}
	slices.Sort(rtts)
	each := max(probingSpace, time.Duration(rtts[len(rtts)/2]))
	if n := min(q.probes, uint32(probingTime/each)); n > firstProbes {
		if err := probe(n - firstProbes); err != nil {
			return spread{}, err
		}
	}
	return spreadOf(rtts), nil
}

// spreadOf sorts spans.
func spreadOf(spans []uint64) spread {
	slices.Sort(spans)
	n := len(spans)
	at := func(p float64) uint64 { return spans[min(n-1, int(p*float64(n)))] }
	return spread{Count: uint64(n), Min: spans[0], P10: at(0.1), P50: at(0.5), P99: at(0.99), Max: spans[n-1]}
}

// print writes a calibration for people.
func (r *calibration) print(w io.Writer) {
	fmt.Fprintf(w, "host %s, %s link, payload %d, worker polls %s\n\n", r.Host, cli.Rate(float64(r.LinkRate)), r.Payload, r.Poll)
	t := table.New("MEASURED", "MIN", "P10", "P50", "P99", "MAX", "PROBES")
	for _, p := range r.Peers {
		t.Rowf("round trip to %s\t%s\t%s\t%s\t%s\t%s\t%d", p.Peer, cli.Span(p.Min), cli.Span(p.P10), cli.Span(p.P50), cli.Span(p.P99), cli.Span(p.Max), p.Count)
	}
	t.Rowf("wake-up of the worker\t%s\t\t%s\t%s\t%s\t%d", cli.Span(r.Wake.Min), cli.Span(r.Wake.P50), cli.Span(r.Wake.P99), cli.Span(r.Wake.Max), r.Wake.Count)
	t.Rowf("reading the clock\t%.0fns", r.ClockRead)
	t.Print(w)
	if len(r.Rates) > 0 {
		fmt.Fprintln(w)
		t = table.Right("RATE", "GOODPUT", "AGAIN", "RTT P50", "")
		for _, p := range r.Rates {
			verdict := "clean"
			if !p.Clean {
				verdict = p.Why
			}
			t.Row(cli.Rate(float64(p.Rate)), cli.Rate(p.Goodput), p.Retransmitted, cli.Span(p.RTT), verdict)
		}
		t.Print(w)
	}
	d := &r.Derived
	fmt.Fprintf(w, "\nRTO_low %s, cap %d packets, BDP %s\n\n# for the configuration of the host:\nbase_rtt: %v\ntimeout: %v\n",
		cli.Span(d.RTOLow), d.Cap, size(d.BDP), units.Duration(d.T), units.Duration(d.RTOHigh))
	switch {
	case len(r.Rates) == 0:
	case r.CleanRate == 0:
		fmt.Fprintln(w, "\nNo rate that was tried is clean: see the last column.")
	case r.CleanRate < r.LinkRate:
		fmt.Fprintf(w, "rate: %v # highest clean one; %v is configured\n", units.Rate(r.CleanRate), units.Rate(r.LinkRate))
	}
	if d.Late {
		fmt.Fprintf(w, "\nWake-ups (p99 %s) come near a quarter of T (%s): what you will see is the machine, not the algorithm. Use lower rates and a longer T,\nfewer processes, or --poll spin on a CPU of its own.\n", cli.Span(r.Wake.P99), cli.Span(d.T))
	}
	for _, n := range r.notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}
