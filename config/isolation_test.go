package config_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/lldp"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

var isolationCases = flag.Int("isolation", 100, "random documents whose ports must be isolated")

// Ports a and b are the pair whose traffic is looked at, c and d those of two
// strangers, e is where copies of packets go. Their stations are 1 to 5.

// wholes are sections of a switch, of which a document has some.
var wholes = []string{
	"lldp: {interval: 5s}",
	"loops: {interval: 1s, shut: 2s}",
	"clock: {root: true, slaves: [c]}",
	"clock: {parent: c, ports: [d]}",
	"flowradar: {mode: both, slot: 1ms, flows: 64}",
	"watch: {sessions: [{name: w, port: e, one_in: 2}]}",
	"watch: {sessions: [{name: w, port: e, snap: 64, drops: [all], own_pauses: true, everflow: {sample: 1}}]}",
	"telemetry: {int: true}",
	"escape: {ports: [c, d], slots: 8, flows: 16}",
	"buffer: {alpha: 4}",
	"fdb: {max: 64}",
	"vlans: [{id: 1, address: [10.0.0.254/16]}]",
	"pfc: {classes: [3], log: 8}",
}

// queues are how queue 0 of the strangers' ports is served, systems what is
// registered with it.
var queues = []string{
	"weight: 1", "max_rate: 1Mbps", "ecn: {kmin: 1KB, kmax: 2KB}", "order: {kind: fq}", "order: {kind: lifo}", "rank: dscp, order: {kind: packs}",
	"admission: {kind: codel}", "order: {kind: calendar, rate: 1Mbps}", "policy: {text: \"q = Queue(64KB); q.admPrio = value; q.procPrio = value;\"}", "shadow: {text: q = Queue(16KB);}",
}

var systems = []string{"", "rocc: {queues: [0]}", "qcn: {queues: [0]}", "hull: {queues: [0]}", "lossradar: {queues: [0], batch: 1ms, timeout: 200us, cells: 16}", "lstf: {queues: [0], write: size}"}

// behaviours are what the strangers send in a step of time, the first to the
// second and back.
var behaviours = []struct {
	name string
	step func(rng *frame.Rand) (first, second [][]byte)
}{
	{"small frames", func(*frame.Rand) (a, b [][]byte) { return times(60, udp(4, 3, 9, 14)), nil }},
	{"large frames of all classes", func(rng *frame.Rand) (a, b [][]byte) {
		for range 20 {
			a = append(a, tagged(4, 3, uint8(rng.Uint32n(8)), 1200))
		}
		return a, times(10, udp(3, 4, 9, 1200))
	}},
	{"pauses without end", func(rng *frame.Rand) (a, b [][]byte) {
		return times(40, udp(4, 3, 9, 14)), [][]byte{wt.PFC(st.HostMAC(4), 0xff, 0xffff), wt.Pause(st.HostMAC(4), 0xffff)}
	}},
	{"stages and pauses that come and go", func(rng *frame.Rand) (a, b [][]byte) {
		return times(40, udp(4, 3, 9, 200)), [][]byte{wt.PFC(st.HostMAC(4), uint8(rng.Uint64()), uint16(rng.Uint64()))}
	}},
	{"addresses and requests for them", func(rng *frame.Rand) (a, b [][]byte) {
		for range 20 {
			a = append(a, udp(4, 100+int(rng.Uint32n(60_000)), 9, 14),
				wt.Frame(wt.Eth(st.HostMAC(4), st.HostMAC(3)), wt.ARP(wire.ARPFields{Op: wire.ARPRequest, SenderMAC: st.HostMAC(3), SenderIP: [4]byte{10, 0, byte(rng.Uint32n(256)), 9}, TargetIP: [4]byte{10, 0, 0, byte(rng.Uint32n(256))}})))
		}
		return a, nil
	}},
	{"tokens", func(rng *frame.Rand) (a, b [][]byte) {
		for range 20 {
			f := wire.TokenFields{Src: st.HostMAC(3), Flow: wire.FlowID{Addrs: rng.Uint64(), Ports: uint32(rng.Uint64()), Proto: 17}, Hops: uint16(rng.Uint64())}
			q := wire.RequestFields{Src: st.HostMAC(3), Flow: f.Flow}
			a = append(a, encoded(f.Encode), encoded(q.Encode), udp(4, 3, 9, 100))
		}
		return a, times(20, udp(3, 4, 9, 100))
	}},
	{"clocks", func(rng *frame.Rand) (a, b [][]byte) {
		for range 30 {
			kinds := []wire.PTPType{wire.PTPSync, wire.PTPPdelayReq, wire.PTPPdelayResp, wire.PTPFollowUp, wire.PTPPdelayRespFollowUp, wire.PTPAnnounce}
			f := wire.PTPFields{Src: st.HostMAC(3), Type: kinds[rng.Uint32n(6)], Domain: 83, Correction: int64(rng.Uint64()), Clock: uint64(rng.Uint32n(4)), Port: uint16(rng.Uint32n(4)), Sequence: uint16(rng.Uint64()),
				Time: wire.PTPTime{Seconds: uint64(rng.Uint32n(4)), Nanoseconds: rng.Uint32n(1e9)}, RequestClock: uint64(rng.Uint32n(4)), RequestPort: uint16(rng.Uint32n(4)), Grandmaster: uint64(rng.Uint32n(4)),
				HasSundial: rng.Uint32n(2) == 0, Sundial: wire.SundialFields{Epoch: rng.Uint32n(4), Uncertainty: uint32(rng.Uint64()), Root: uint64(rng.Uint32n(4)), Late: uint32(rng.Uint64())}}
			a = append(a, encoded(f.Encode))
		}
		return a, mutated(rng, a)
	}},
	{"neighbours that say who they are", func(rng *frame.Rand) (a, b [][]byte) {
		for range 20 {
			u := lldp.Unit{Src: st.HostMAC(3 + int(rng.Uint32n(1000))), Chassis: lldp.ID{Kind: lldp.ChassisMAC, Value: []byte{2, 0, 0, 0, byte(rng.Uint64()), byte(rng.Uint64())}},
				Port: lldp.ID{Kind: lldp.PortMAC, Value: []byte{2, 0, 0, 0, 0, byte(rng.Uint64())}}, TTL: uint16(rng.Uint64()), Name: []byte("stranger")}
			a = append(a, encoded(u.Encode))
		}
		return a, mutated(rng, a)
	}},
	{"link tags", func(rng *frame.Rand) (a, b [][]byte) {
		for range 30 {
			tag := []byte{0x88, 0xb6, byte(rng.Uint64()), byte(rng.Uint64()), 0, byte(rng.Uint32n(4)), byte(rng.Uint64()), byte(rng.Uint64())}
			if rng.Uint32n(2) == 0 {
				tag[2] = 1 << 6
			}
			f := udp(4, 3, 9, 60)
			a = append(a, slices.Concat(f[:12], tag, f[12:]))
		}
		return a, mutated(rng, a)
	}},
	{"telemetry", func(rng *frame.Rand) (a, b [][]byte) {
		for range 20 {
			body := make([]byte, 120)
			for i := range body {
				body[i] = byte(rng.Uint64())
			}
			f := udp(4, 3, wire.HPCCPort+uint16(rng.Uint32n(3)), 120)
			copy(f[len(f)-120:], body)
			a = append(a, f)
		}
		return a, nil
	}},
	{"slack", func(rng *frame.Rand) (a, b [][]byte) {
		for range 20 {
			a = append(a, wt.Frame(wt.Eth(st.HostMAC(4), st.HostMAC(3)), wt.Slack(int64(rng.Uint64()), int64(rng.Uint64())), wt.IPv4("10.0.0.3", "10.0.0.4"), wt.UDP(1, 2), wt.Zeros(100)))
		}
		return a, mutated(rng, a)
	}},
	{"noise", func(rng *frame.Rand) (a, b [][]byte) {
		for range 40 {
			a = append(a, udp(4, 3, 9, int(rng.Uint32n(200))))
		}
		return mutated(rng, a), nil
	}},
}

func udp(to, from int, port uint16, bytes int) []byte {
	return wt.Frame(wt.Eth(st.HostMAC(to), st.HostMAC(from)), wt.IPv4(fmt.Sprintf("10.0.0.%d", from%250), fmt.Sprintf("10.0.0.%d", to%250)), wt.UDP(1, port), wt.Zeros(bytes))
}

func tagged(to, from int, pcp uint8, bytes int) []byte {
	return wt.Frame(wt.Eth(st.HostMAC(to), st.HostMAC(from)), wt.VLAN(0, pcp), wt.IPv4("10.0.0.3", "10.0.0.4"), wt.UDP(1, 2), wt.Zeros(bytes))
}

func times(n int, b []byte) (v [][]byte) {
	for range n {
		v = append(v, b)
	}
	return v
}

// encoded is what an encoder writes of a frame.
func encoded(encode func([]byte) int) []byte {
	b := make([]byte, 1500)
	return b[:encode(b)]
}

// mutated are frames with some bytes behind the addresses changed, and cut
// short.
func mutated(rng *frame.Rand, frames [][]byte) (v [][]byte) {
	for _, f := range frames {
		m := slices.Clone(f)
		for range rng.Uint32n(8) {
			m[12+rng.Uint32n(uint32(len(m)-12))] = byte(rng.Uint64())
		}
		v = append(v, m[:14+rng.Uint32n(uint32(len(m)-13))])
	}
	return v
}

// document is a random one, in which some of what there is comes together.
func document(rng *frame.Rand) string {
	one := func(v []string) string { return v[rng.Uint32n(uint32(len(v)))] }
	rates := []string{"1Mbps", "10Mbps", "100Mbps", "1Gbps"}
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nworkers: [{}, {}]\nswitches:\n  - name: s\n    ports:\n")
	fmt.Fprintf(&b, "      - {name: a, interface: a, workers: [0], rate: 1Gbps, faces: host}\n      - {name: b, interface: b, workers: [0], rate: 1Gbps, faces: host}\n")
	for _, p := range []string{"c", "d"} {
		fmt.Fprintf(&b, "      - {name: %s, interface: %s, workers: [0], rate: %s, faces: %s, qos: %s, min_frame: 14}\n", p, p, one(rates), one([]string{"host", "switch"}), p)
	}
	fmt.Fprintf(&b, "      - {name: e, interface: e, workers: [0], rate: %s}\n    qos:\n", one(rates))
	for _, p := range []string{"c", "d"} {
		fmt.Fprintf(&b, "      %s: {queues: [{queue: 0, %s}]", p, one(queues))
		if s := one(systems); s != "" {
			fmt.Fprintf(&b, ", %s", s)
		}
		b.WriteString("}\n")
	}
	said := map[string]bool{}
	for range rng.Uint32n(5) {
		w := one(wholes)
		if key, _, _ := strings.Cut(w, ":"); !said[key] {
			said[key] = true
			fmt.Fprintf(&b, "    %s\n", w)
		}
	}
	return b.String()
}

// made is what a switch is made from by a document, or nil: if that is refused.
func made(text string) *vswitch.Config {
	doc, err := config.Parse("document", []byte(text))
	if err != nil {
		return nil
	}
	cfg := doc.Resolved().Switches[0].VSwitch(nil)
	arena := frame.MustArena(1024, 2048, frame.DefaultHeadroom)
	if _, err := vswitch.New(cfg, []*frame.Pool{frame.NewDepot(arena).NewPool(arena)}); err != nil {
		return nil
	}
	return cfg
}

// isolated plays one random case: whatever the two strangers do to each other,
// the pair's frames all arrive and its sender is not paused.
func isolated(t *testing.T, seed uint64, count map[string]int) {
	rng := frame.NewRand(seed)
	var cfg *vswitch.Config
	for cfg == nil {
		text := document(&rng)
		if cfg = made(text); cfg == nil {
			count["refused"]++ // what does not go together
			continue
		}
		t.Log(text)
	}
	r := st.NewOf(t, cfg, 1, 4096)
	for i := range uint16(5) { // all are known
		r.In(i, udp(99, int(i)+1, 9, 20))
		for o := range uint16(5) {
			r.Out(o)
		}
	}
	what := &behaviours[rng.Uint32n(uint32(len(behaviours)))]
	count[what.name]++
	size, slow := 20+int(rng.Uint32n(1000)), 1+rng.Uint32n(8)
	sent, arrived, paused := 0, 0, 0
	const steps, rest, step = 200, 20, 50 * frame.Microsecond
	for i := range uint32(steps + rest) { // the last ones for what waits
		if i < steps {
			first, second := what.step(&rng)
			r.In(2, first...)
			r.In(3, second...)
			n := 1 + int(rng.Uint32n(3))
			r.In(0, times(n, udp(2, 1, 4791, size))...)
			sent += n
		}
		for o := range uint16(5) {
			if o == 3 && i%slow != 0 {
				continue // whose link takes nothing for a while
			}
			for _, f := range r.Out(o) {
				switch e := wire.Ethernet(f); {
				case o == 1 && e.Src() == st.HostMAC(1):
					arrived++
				case o == 0 && e.EtherType() == wire.EtherTypeMACControl:
					paused++
				}
			}
		}
		r.Advance(step)
	}
	if arrived != sent || paused != 0 {
		t.Errorf("seed %d, %s: %d of %d frames arrived, their sender was paused %d times; drops %v", seed, what.name, arrived, sent, paused, r.Drops())
	}
}

// Whatever systems a switch has, and whatever two strangers send for them to
// take, a pair of other ports loses nothing to them.
func TestIsolationOfSystems(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(*isolationCases) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { isolated(t, seed, count) })
		if t.Failed() {
			break
		}
	}
	t.Logf("cases: %v", count)
	for i := range behaviours {
		if n := behaviours[i].name; *isolationCases >= 100 && count[n] == 0 {
			t.Errorf("%s was not tried", n)
		}
	}
}
