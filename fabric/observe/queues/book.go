package queues

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gswitch/deter"
	"gswitch/fabric/observe"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/vswitch"
	"gswitch/wholefile"
	"gswitch/wire"
)

// book is what hosts recorded of a run.
type book struct {
	r   *scenario.Run
	dir string

	of      []deter.Packet
	sent    []departure // by packet
	flows   map[string]uint32
	names   []string        // of flows
	dropped map[uint32]bool // packets that switches dropped
}

// departure is a packet that a host sent.
type departure struct {
	packet uint32
	host   int32
	at     frame.Time
	span   uint32
	wire   uint32
	head   []byte
}

// possible refuses runs whose queues cannot be replayed.
func possible(r *observe.Run) error {
	d := r.Doc
	switch {
	case r.Real:
		return errors.New("queue_replay: it compares the queues of a run in virtual time with their replay: run it with --on sim")
	case d.PFC.Enabled:
		return errors.New("queue_replay: hosts that switches pause do not send at times of their own: set pfc.enabled to false")
	case len(d.Faults) > 0:
		return errors.New("queue_replay: what links lose is not recorded: remove faults")
	}
	_, err := scenario.FindHosts(r.Topology, d.QueueReplay.Hosts)
	return err
}

// send notes a packet that a host sends, and returns its number.
func (b *book) send(host int32, m *frame.Meta, bytes []byte) uint32 {
	p := uint32(len(b.of))
	b.of = append(b.of, deter.Packet{Flow: b.flow(bytes), Bytes: m.Wire})
	b.sent = append(b.sent, departure{p, host, m.Depart, m.Span, m.Wire, slices.Clone(bytes)})
	return p
}

// flow returns the number of the flow of an IPv4 packet without options: addresses, ports
// and protocol. All other packets are one.
func (b *book) flow(p []byte) uint32 {
	const l3, l4 = wire.EthernetLen, wire.EthernetLen + wire.IPv4Len
	key := ""
	if len(p) >= l4+4 && p[12] == 8 && p[13] == 0 {
		key = string(p[l3+12:l4+4]) + string(p[l3+9])
	}
	f, known := b.flows[key]
	if known {
		return f
	}
	f = uint32(len(b.names))
	b.flows[key] = f
	name := "others"
	if key != "" {
		ip := wire.IPv4(p[l3:])
		name = fmt.Sprintf("%v > %v", netip.AddrPortFrom(netip.AddrFrom4(ip.Src()), binary.BigEndian.Uint16(p[l4:])), netip.AddrPortFrom(netip.AddrFrom4(ip.Dst()), binary.BigEndian.Uint16(p[l4+2:])))
	}
	b.names = append(b.names, name)
	return f
}

// limit is that of a queue of the shared buffer while so many bytes of it are in use: the
// dynamic threshold of Choudhury and Hahne (1998), or what is set.
func (b *book) limit(used uint64) uint64 {
	c := &b.r.Doc.Switch.Buffer
	t := uint64(0)
	if size := uint64(c.Size); used < size {
		t = uint64(cmp.Or(c.Alpha, 1) * float64(size-used))
	}
	if c.QueueLimit > 0 {
		t = min(t, uint64(c.QueueLimit))
	}
	return t
}

// inferred returns what the recorded hosts send in a replay, by host, at the times that
// samples of each flow and the clocks of the hosts give, and how many samples there are.
func (b *book) inferred(hosts int) (v [][]departure, packets, samples int, err error) {
	c := &b.r.Doc.QueueReplay
	recorded, err := scenario.FindHosts(b.r.Topology, c.Hosts)
	if err != nil {
		return nil, 0, 0, err
	}
	rng := frame.NewRand(b.r.Seed)
	ahead := make([]frame.Time, hosts)
	for i := range ahead {
		if c.ClockError > 0 {
			ahead[i] = frame.Time(rng.Uint64() % uint64(c.ClockError+1))
		}
	}
	type stream struct {
		host int32
		flow uint32
	}
	of := map[stream][]uint32{}
	for i := range b.sent {
		s := stream{b.sent[i].host, b.of[i].Flow}
		of[s] = append(of[s], uint32(i))
	}
	v = make([][]departure, hosts)
	order := func(x, y stream) int { return cmp.Or(cmp.Compare(x.host, y.host), cmp.Compare(x.flow, y.flow)) }
	for _, s := range slices.SortedFunc(maps.Keys(of), order) {
		if len(c.Hosts) > 0 && !slices.Contains(recorded, s.host) {
			continue
		}
		sampler := deter.Sampler{Bound: frame.Time(c.Bound)}
		for _, p := range of[s] {
			sampler.Add(b.sent[p].at)
		}
		kept := sampler.Samples()
		packets += len(of[s])
		if samples += len(kept); c.Bound == 0 {
			samples += len(of[s]) - len(kept)
		}
		for i, at := range deter.Times(kept, len(of[s])) {
			d := b.sent[of[s][i]]
			if c.Bound > 0 {
				d.at = at
			}
			d.at += ahead[s.host]
			v[s.host] = append(v[s.host], d)
		}
	}
	for i := range v {
		slices.SortStableFunc(v[i], func(x, y departure) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.packet, y.packet)) })
	}
	return v, packets, samples, nil
}

// replay sends the packets again through switches of the same kind.
func (b *book) replay(ctx context.Context, as vnet.Config, sources [][]departure, tags bool, until frame.Time) (*watch, error) {
	w := &watch{book: b, sources: slices.Clone(sources), tags: tags}
	as.Wrap, as.Cores, as.Part = w.wrap, 1, nil
	if tags {
		// The rule decides, and nothing else.
		full := as.Buffer.Size
		as.Buffer.Size, as.Buffer.Alpha, as.Buffer.QueueLimit, as.Buffer.Ingress = 4*full, 1024, 0, 0
		before, sw := as.AdjustSwitch, 0
		as.AdjustSwitch = func(name string, c *vswitch.Config) {
			if before != nil {
				before(name, c)
			}
			for p := range c.Ports {
				for q := range c.Ports[p].Scheduler.Queues {
					c.Ports[p].Scheduler.Queues[q].Admission = &tagRule{w, sw, deter.TagMargin * uint64(as.Payload+overheadOfPackets)}
				}
			}
			sw++
		}
	}
	n, err := vnet.Build(&as)
	if err != nil {
		return nil, err
	}
	for _, h := range n.Topology.Hosts() {
		n.Engine.Poke(n.EngineNode(h)) // its source has something to send
	}
	for k := frame.Time(1); k <= 100 && err == nil; k++ {
		if err = ctx.Err(); err == nil {
			err = n.Engine.Run(until / 100 * k)
		}
	}
	return w, errors.Join(err, n.Engine.Close())
}

// overheadOfPackets is about what a full packet has besides its payload.
const overheadOfPackets = 60

// finish replays the queues and compares.
func (b *book) finish(ctx context.Context, as vnet.Config, run *watch, now frame.Time, out *results.Run) error {
	sources, packets, samples, err := b.inferred(len(b.r.Topology.Hosts()))
	if err != nil {
		return err
	}
	until := now + 20*frame.Millisecond // what is late arrives, too
	plain, err := b.replay(ctx, as, sources, false, until)
	if err != nil {
		return fmt.Errorf("queue_replay: %w", err)
	}
	withTags, err := b.replay(ctx, as, sources, true, until)
	if err != nil {
		return fmt.Errorf("queue_replay with tags: %w", err)
	}
	e, u := deter.CompareQueues(b.of, run.queues, withTags.queues), deter.CompareQueues(b.of, run.queues, plain.queues)
	found, share := 0.0, 0.0
	if flow, bytes, all := e.Builder(e.Run); all > 0 {
		share = float64(bytes) / float64(all)
		if replayed, _, _ := e.Builder(e.Replayed); replayed == flow {
			found = 1
		}
	}
	for name, v := range map[string]float64{
		"difference_mean_bytes": e.Mean, "difference_p99_bytes": e.P99, "drop_error_share": e.DropError(), "untagged_drop_error_share": u.DropError(),
		"false_drops_total": float64(e.FalseDrop), "false_accepts_total": float64(e.FalseAccept), "wrong_place_share": float64(e.WrongPlace) / float64(max(1, e.Either)),
		"drops_total": float64(e.Dropped), "packets_total": float64(packets), "samples_share": float64(samples) / float64(max(1, packets)),
		"builders_found_total": found, "builder_share": share,
	} {
		out.Values["queue_replay_"+name] = v
	}
	if b.dir == "" {
		return nil
	}
	return errors.Join(b.write(&e), b.writeSeries(run.queues, withTags.queues))
}

// writeSeries keeps how long the queues that dropped packets were, and how many they
// dropped, in each bin of measure, in the run and in the replay.
func (b *book) writeSeries(run, replayed [][]deter.Queue) error {
	rows := [][]string{{"queue", "at_s", "run_bytes", "replay_bytes", "run_drops", "replay_drops"}}
	bin, t := frame.Time(b.r.Doc.Measure.Bin), b.r.Topology
	for sw := range run {
		for port := range run[sw] {
			bytes, drops := [2][]float64{}, [2][]int{}
			for i, q := range []*deter.Queue{&run[sw][port], &replayed[sw][port]} {
				bytes[i], drops[i] = q.Series(b.of, bin)
			}
			if slices.Max(append(drops[0], 0)) == 0 {
				continue
			}
			for k := range drops[0] {
				row := []string{scenario.PortName(t, t.Switches()[sw], port), fmt.Sprint((frame.Time(k) * bin).Seconds()), fmt.Sprint(bytes[0][k]), "0", strconv.Itoa(drops[0][k]), "0"}
				if k < len(drops[1]) {
					row[3], row[5] = fmt.Sprint(bytes[1][k]), strconv.Itoa(drops[1][k])
				}
				rows = append(rows, row)
			}
		}
	}
	return b.file("-series", rows)
}

// write keeps what the longest queue held, in the run and in the replay.
func (b *book) write(e *deter.QueueErrors) error {
	t := b.r.Topology
	sw := t.Switches()[e.Longest[0]]
	rows := [][]string{{"queue", "at_s", "flow", "run_bytes", "replay_bytes"}}
	flows := maps.Clone(e.Run)
	maps.Copy(flows, e.Replayed)
	for _, f := range slices.SortedFunc(maps.Keys(flows), func(x, y uint32) int { return cmp.Or(cmp.Compare(e.Run[y], e.Run[x]), cmp.Compare(x, y)) }) {
		rows = append(rows, []string{scenario.PortName(t, sw, e.Longest[1]), fmt.Sprint(e.At.Seconds()), b.names[f], strconv.FormatInt(e.Run[f], 10), strconv.FormatInt(e.Replayed[f], 10)})
	}
	return b.file("", rows)
}

// file writes a table among the results.
func (b *book) file(kind string, rows [][]string) error {
	dir := filepath.Join(b.dir, "queues")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("%s-seed-%d%s.csv", b.r.Name, b.r.Seed, kind))
	return wholefile.Write(name, 0o666, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(rows) })
}
