package config_test

import (
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gswitch/clocksync"
	"gswitch/config"
	"gswitch/frame"
	"gswitch/lldp"
	"gswitch/notice"
	"gswitch/rocc"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

var isolationCases = flag.Int("isolation", 100, "random documents whose ports must be isolated")
var longCases = flag.Int("isolation-long", 3, "the same, for 9 s each")

// Ports a and b are the pair whose traffic is looked at, c and d those of two
// others, e is where copies of packets go. Their stations are 1 to 5.

// wholes are sections of a switch, of which a document has some.
var wholes = []string{
	"lldp: {interval: 5s}",
	"loops: {interval: 1s, shut: 2s}",
	"clock: {root: true, slaves: [c]}",
	"clock: {parent: c, ports: [d]}",
	"flowradar: {mode: both, slot: 1ms, flows: 64}",
	"watch: {sessions: [{name: w, port: e, one_in: 2}]}",
	"watch: {sessions: [{name: w, port: e, snap: 128, drops: [all], own_pauses: true, everflow: {sample: 1}}]}",
	"telemetry: {int: true}",
	"escape: {ports: [c, d], slots: 8, flows: 16}",
	"buffer: {alpha: 4}",
	"buffer: {size: 256KiB}",
	"buffer: {size: 1MiB}",
	"crossbar: {}",
	"crossbar: {cap: total, skip_blocked: false}",
	"crossbar: {ingress: 1MiB, egress: 1MiB, reserve: 1MiB}",
	"crossbar: {ingress: 64KiB, egress: 16KiB, reserve: 16KiB, speedup: 1, latency: 4us}",
	"fdb: {max: 64}",
	"vlans: [{id: 1, address: [10.0.0.254/16]}]",
	"vlans: [{id: 1, address: [10.0.0.254/16, 'fd00::fe/64']}]",
	"pfc: {classes: [3], log: 8}",
}

// queues are how queue 0 of the others' ports is served, systems what is
// registered with it.
var queues = []string{
	"weight: 1", "max_rate: 1Mbps", "ecn: {kmin: 1KB, kmax: 2KB}", "order: {kind: fq}", "order: {kind: lifo}", "rank: dscp, order: {kind: packs}",
	"admission: {kind: codel}", "order: {kind: calendar, rate: 1Mbps}", "policy: {text: \"q = Queue(64KB); q.admPrio = value; q.procPrio = value;\"}", "shadow: {text: q = Queue(16KB);}",
}

var systems = []string{"", "rocc: {queues: [0]}", "qcn: {queues: [0]}", "hull: {queues: [0]}", "lossradar: {queues: [0], batch: 1ms, timeout: 200us, cells: 16}", "lstf: {queues: [0], write: size}"}

// lineRate are the bytes of a step of 50 us by a link of 1 Gb/s, the pair's and the fastest of
// the others'.
const lineRate = 6250

// behaviours are what the others send in a step of time, the first to the
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
	{"requests to all", func(rng *frame.Rand) (a, b [][]byte) {
		for range 90 { // the whole of a link
			mac := st.HostMAC(100 + int(rng.Uint32n(60_000)))
			a = append(a, wt.Frame(wt.Eth(wire.BroadcastMAC, mac), wt.ARP(wire.ARPFields{Op: wire.ARPRequest, SenderMAC: mac, SenderIP: [4]byte{10, 0, byte(rng.Uint32n(256)), byte(rng.Uint32n(256))}, TargetIP: [4]byte{10, 0, 0, byte(rng.Uint32n(256))}})))
		}
		return a, times(4, udp(3, 4, 9, 1200))
	}},
	{"neighbour discovery", func(rng *frame.Rand) (a, b [][]byte) {
		for range 30 { // the whole of a link: multicast reaches the pair's, too
			of, mac := wt.Addr6("fd00::"), st.HostMAC(100+int(rng.Uint32n(60_000)))
			of[14], of[15] = byte(rng.Uint64()), byte(rng.Uint64())
			from := of
			from[13] = byte(rng.Uint64())
			var opt [wire.NDLinkLayerLen]byte
			wire.PutNDLinkLayer(opt[:], wire.NDSourceLinkLayer, mac)
			group, to := wire.SolicitedNode(of)
			a = append(a, wt.Frame(wt.Eth(to, mac), wt.IPv6(netip.AddrFrom16(from).String(), netip.AddrFrom16(group).String(), wt.TTL(255)), wt.ND(wire.NDFields{Type: wire.ICMPv6NeighborSolicitation, Target: of, Options: opt[:]})),
				wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(3)), wt.IPv6("fd00::3", netip.AddrFrom16(of).String()), wt.UDP(1, 2), wt.Zeros(14)))
		}
		return a, mutated(rng, a[:4])
	}},
	{"notices and congestion notifications", func(rng *frame.Rand) (a, b [][]byte) {
		for range 20 {
			f := udp(4, 3, wire.RoCEv2Port, 60)
			n := rocc.Notice{Port: uint16(rng.Uint32n(4)), Switch: rng.Uint32n(4), Fair: rng.Uint32n(1000), Unit: rng.Uint32n(1e6), Stretch: uint8(rng.Uint32n(16)), Sequence: uint32(rng.Uint64())}
			msg := make([]byte, rocc.NoticeLen+40)
			n.Encode(msg, notice.Type4, f[14:54])
			a = append(a, wt.Frame(wt.Eth(st.HostMAC(4), st.HostMAC(3)), wt.IPv4("192.0.0.8", "10.0.0.4"), wt.ICMP(msg[0], msg[1], wire.ICMP(msg).Rest()), wt.Payload(msg[8:])),
				wt.Frame(wt.Eth(st.HostMAC(4), st.HostMAC(3)), wt.IPv4("10.0.0.2", "10.0.0.4"), wt.UDP(uint16(rng.Uint64()), wire.RoCEv2Port), wt.BTH(wire.RoCECongestionNotify, uint32(rng.Uint64())&0xffffff, 0), wt.Zeros(20)),
				udp(4, 3, 9, 1000))
		}
		return a, mutated(rng, a)
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
			f := clocksync.Packet{PTPFields: wire.PTPFields{Src: st.HostMAC(3), Type: kinds[rng.Uint32n(6)], Domain: 83, Correction: int64(rng.Uint64()), Clock: uint64(rng.Uint32n(4)), Port: uint16(rng.Uint32n(4)), Sequence: uint16(rng.Uint64()),
				Time: wire.PTPTime{Seconds: uint64(rng.Uint32n(4)), Nanoseconds: rng.Uint32n(1e9)}, RequestClock: uint64(rng.Uint32n(4)), RequestPort: uint16(rng.Uint32n(4)), Grandmaster: uint64(rng.Uint32n(4))},
				HasSundial: rng.Uint32n(2) == 0, Sundial: clocksync.Fields{Epoch: rng.Uint32n(4), Uncertainty: uint32(rng.Uint64()), Root: uint64(rng.Uint32n(4)), Late: uint32(rng.Uint64())}}
			a = append(a, encoded(f.Encode))
		}
		return a, mutated(rng, a)
	}},
	{"floods at line rate, in any class", func(rng *frame.Rand) (a, b [][]byte) {
		to := []wire.MAC{wire.BroadcastMAC, {1, 0, 0x5e, 1, 2, 3}, {0x33, 0x33, 0, 0, 0, 9}, st.HostMAC(65_000)}[rng.Uint32n(4)]
		pcp, size := uint8(rng.Uint32n(8)), int(rng.Uint32n(1400))
		for n := 0; n < lineRate; n += size + 70 {
			f := tagged(4, 3, pcp, size)
			copy(f, to[:])
			a = append(a, f)
		}
		return a, a[:len(a)/2]
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
	workers := []int{0, 0, 0, 0, 0}
	if rng.Uint32n(3) == 0 {
		for i := range workers {
			workers[i] = int(rng.Uint32n(2))
		}
		workers[4] = 1 // there are two
		workers[0] = 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nworkers: [{}, {}]\nswitches:\n  - name: s\n    mac: %v\n    ports:\n", st.SelfMAC)
	// The pair is bridged, or the switch routes between them.
	var pair [2]string
	if rng.Uint32n(4) == 0 {
		pair = [2]string{", address: [10.1.0.254/24]", ", address: [10.2.0.254/24]"}
	}
	for i, p := range []string{"a", "b"} {
		fmt.Fprintf(&b, "      - {name: %s, interface: %s, workers: [%d], rate: 1Gbps, faces: host%s}\n", p, p, workers[i], pair[i])
	}
	for i, p := range []string{"c", "d"} {
		fmt.Fprintf(&b, "      - {name: %s, interface: %s, workers: [%d], rate: %s, faces: %s, qos: %s, min_frame: 14}\n", p, p, workers[i+2], one(rates), one([]string{"host", "switch"}), p)
	}
	fmt.Fprintf(&b, "      - {name: e, interface: e, workers: [%d], rate: %s}\n    qos:\n", workers[4], one(rates))
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
	depot := frame.NewDepot(arena)
	var pools []*frame.Pool
	for range workersOf(cfg) {
		pools = append(pools, depot.NewPool(arena))
	}
	if _, err := vswitch.New(cfg, pools); err != nil {
		return nil
	}
	return cfg
}

// workersOf is how many workers a switch runs on.
func workersOf(cfg *vswitch.Config) (n int) {
	for i := range cfg.Ports {
		n = max(n, cfg.Ports[i].Worker+1)
	}
	return n
}

// isolated plays one random case: whatever the two others do to each other,
// the pair's frames all arrive and its sender is not paused.
func isolated(t *testing.T, seed uint64, steps uint32, step frame.Time, count map[string]int) {
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
	workers := workersOf(cfg)
	if workers > 1 {
		count["two workers"]++
	}
	routed := cfg.Ports[0].Addresses != nil
	r := st.NewOf(t, cfg, workers, 4096)
	if routed { // the switch asks for the receiver
		count["routed"]++
		r.In(1, wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(2)), wt.ARP(wire.ARPFields{Op: wire.ARPRequest, SenderMAC: st.HostMAC(2), SenderIP: [4]byte{10, 2, 0, 2}, TargetIP: [4]byte{10, 2, 0, 254}})))
	}
	for i := range uint16(5) { // all are known
		if routed && i < 2 {
			continue
		}
		r.In(i, udp(99, int(i)+1, 9, 20))
		for range 2 { // a crossbar takes its time
			for o := range uint16(5) {
				r.Out(o)
			}
			r.Advance(frame.Millisecond)
		}
	}
	what := &behaviours[rng.Uint32n(uint32(len(behaviours)))]
	count[what.name]++
	size, slow := 20+int(rng.Uint32n(1000)), 1+rng.Uint32n(8)
	mine, sender := udp(2, 1, 4791, size), st.HostMAC(1)
	if routed {
		mine, sender = wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(1)), wt.IPv4("10.1.0.1", "10.2.0.2"), wt.UDP(1, 4791), wt.Zeros(size)), st.SelfMAC
	}
	sent, arrived, paused := 0, 0, 0
	const rest = 400
	for i := range steps + rest { // the last ones for what waits
		if i < steps {
			first, second := what.step(&rng)
			r.In(2, first...)
			r.In(3, second...)
			n := 1 + int(rng.Uint32n(3))
			r.In(0, times(n, mine)...)
			sent += n
		}
		for o := range uint16(5) {
			if o == 3 && i%slow != 0 {
				continue // whose link takes nothing for a while
			}
			for _, f := range r.Out(o) {
				switch e := wire.Ethernet(f); {
				case o == 1 && e.Src() == sender && len(f) == len(mine):
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

// Whatever systems a switch has, and whatever two others send for them to
// take, a pair of other ports loses nothing to them.
func TestIsolationOfSystems(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(*isolationCases) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { isolated(t, seed, 200, 50*frame.Microsecond, count) })
		if t.Failed() {
			break
		}
	}
	t.Logf("cases: %v", count)
	for _, what := range []string{"two workers", "routed"} {
		if *isolationCases >= 100 && count[what] == 0 {
			t.Errorf("%s: not tried", what)
		}
	}
	for i := range behaviours {
		if n := behaviours[i].name; *isolationCases >= 100 && count[n] == 0 {
			t.Errorf("%s was not tried", n)
		}
	}
}

// The same for 9 s, in which timers of all systems run out, addresses age and meters
// are full and empty again and again.
func TestIsolationLasts(t *testing.T) {
	for seed := range uint64(*longCases) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { isolated(t, 1e6+seed, 9000, frame.Millisecond, map[string]int{}) })
		if t.Failed() {
			break
		}
	}
}

// A host that pauses its class without end stops it for itself: in a switch as documents
// have it, whose ports face hosts, others go on after a while, and their sender's pause
// ends. Without the watchdog the sender stays paused, and all of its class stands.
func TestOneHostStopsNoClass(t *testing.T) {
	for _, action := range []string{"drop", "off"} {
		cfg := made(`version: 1
workers: [{}]
switches:
  - name: s
    pfc: {classes: [3]}
    buffer: {size: 256KiB}
    ports:
      - {name: a, interface: a, rate: 1Gbps, trust: pcp, ` + map[string]string{"drop": "", "off": "watchdog: {action: off}"}[action] + `}
      - {name: b, interface: b, rate: 1Gbps, trust: pcp, ` + map[string]string{"drop": "", "off": "watchdog: {action: off}"}[action] + `}
      - {name: c, interface: c, rate: 1Gbps, trust: pcp, ` + map[string]string{"drop": "", "off": "watchdog: {action: off}"}[action] + `}
`)
		if cfg == nil {
			t.Fatal("the document is refused")
		}
		r := st.NewOf(t, cfg, 1, 4096)
		for i := range uint16(3) {
			r.In(i, udp(99, int(i)+1, 9, 20))
			for o := range uint16(3) {
				r.Out(o)
			}
		}
		var paused bool // the class of the sender at port a
		arrived := 0    // from there at port b, in the last 100 ms
		const step = frame.Millisecond
		for i := range 600 {
			r.In(2, wt.PFC(st.HostMAC(3), 1<<3, 0xffff))
			if !paused {
				r.In(0, append(times(10, tagged(3, 1, 3, 1000)), tagged(2, 1, 3, 1000))...)
			}
			for o := range uint16(3) {
				for _, f := range r.Out(o) {
					switch e := wire.Ethernet(f); {
					case o == 0 && e.EtherType() == wire.EtherTypeMACControl:
						paused = f[14+4+2*3] != 0 || f[14+5+2*3] != 0
					case o == 1 && i >= 500:
						arrived++
					}
				}
			}
			r.Advance(step)
		}
		if action == "drop" && (arrived < 95 || paused) || action == "off" && (arrived != 0 || !paused) {
			t.Errorf("watchdog %s: %d of 100 frames arrived, paused %v; drops %v", action, arrived, paused, r.Drops())
		}
	}
}
