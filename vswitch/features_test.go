package vswitch_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"gswitch/clocksync"
	"gswitch/clocksync/boundary"
	crossbarpoint "gswitch/crossbar/point"
	"gswitch/escape"
	escapepoint "gswitch/escape/point"
	"gswitch/frame"
	gfcpoint "gswitch/gfc/point"
	"gswitch/hull"
	hulllink "gswitch/hull/link"
	inband "gswitch/int"
	intpoint "gswitch/int/point"
	lldppoint "gswitch/lldp/point"
	looppoint "gswitch/loopguard/point"
	"gswitch/lstf"
	lstfpoint "gswitch/lstf/point"
	mirrorpoint "gswitch/mirror/point"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/policy"
	"gswitch/qcn"
	qcnpoint "gswitch/qcn/point"
	"gswitch/rocc"
	roccpoint "gswitch/rocc/point"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
	_ "gswitch/systems" // the table of exclusions
	flowpoint "gswitch/telemetry/flowradar/point"
	"gswitch/telemetry/lossradar"
	losspoint "gswitch/telemetry/lossradar/point"
	"gswitch/vswitch"
	wt "gswitch/wire/wiretest"
)

// feature is one of the things that a switch can do beside others.
type feature uint

const (
	featRoCC feature = iota
	featQCN
	featEscape
	featGentle
	featCrossbar
	featTelemetry
	featLists // access lists: drop, police, mirror
	featPaths // several next hops, by load
	featECN
	featWatchdog
	featRates // queues with weights and rates of their own
	featVLAN
	featRouting
	featWorkers // two of them
	featFewChunks
	featDynamic // thresholds that follow the free buffer
	featPushOut // of lossy classes
	featHULL
	featSlack // written at port a, charged at all
	featLossRadar
	featFlowRadar
	featPolicy // of OpenQueue, for lossy class 1, whose queues share a buffer
	featClock
	featLLDP
	featWatch // copies at random to port d
	featLoops
	featRanked // lossy class 0 leaves by size
	featPacks  // lossy class 1, which drops what comes with a low rank
	featFair   // flows of lossy class 2 take turns, and CoDel drops as they leave; those of lossless class 4 take turns
	featTimed  // flows of lossy class 5 are held back to a pace
	featTurns  // ingress ports take turns in lossless class 4
	featRED    // admissions of lossy classes: 0
	featAIFO   // 2
	featCoDel  // 5, as frames leave
	featShadow // of lossy class 1
	featPI
	featErrDisable
	featStorm    // floods are limited where they come in
	featFloods   // and where they go out
	featLimits   // of lossy classes at each port
	featOnlooker // a feature sees frames join queues, and no more
	featLedger   // a feature sees each frame join, leave its queue and leave the switch
	numFeatures
)

// Lossy classes whose queues may change the order of a flow.
const (
	rankedClass = 0
	packsClass  = 1
)

var featureNames = [numFeatures]string{"rocc", "qcn", "escape", "gentle", "crossbar", "telemetry", "lists", "paths", "ecn", "watchdog", "rates", "vlan", "routing", "workers", "few-chunks", "dynamic", "push-out",
	"hull", "slack", "lossradar", "flowradar", "policy", "clock", "lldp", "watch", "loops",
	"ranked", "packs", "fair", "timed", "turns", "red", "aifo", "codel", "shadow", "pi", "err-disable", "storm", "floods", "limits", "onlooker", "ledger"}

type features uint64

func (f features) has(x feature) bool          { return f>>x&1 != 0 }
func (f features) with(x feature) features     { return f | 1<<x }
func (f features) toggled(x features) features { return f ^ x }
func (f features) without(x ...feature) features {
	for _, y := range x {
		f &^= 1 << y
	}
	return f
}

func (f features) String() string {
	var v []string
	for x := range numFeatures {
		if f.has(x) {
			v = append(v, featureNames[x])
		}
	}
	return "[" + strings.Join(v, " ") + "]"
}

// keys are those of the table of exclusions (systems/exclusions.go).
var keys = [numFeatures][]string{featRoCC: {"rocc"}, featQCN: {"qcn"}, featEscape: {"escape"}, featGentle: {"gfc"}, featCrossbar: {"crossbar"}, featTelemetry: {"int"}, featPushOut: {"push_out"}, featHULL: {"hull"},
	featSlack: {"lstf"}, featLossRadar: {"lossradar"}, featFlowRadar: {"flowradar"}, featPolicy: {"policy", "order", vswitch.Dropping}, featClock: {"clock"}, featLLDP: {"lldp"}, featWatch: {"watch"}, featLoops: {"loops"},
	featPaths: {"choose"}, featWatchdog: {"watchdog"}, featWorkers: {vswitch.SeveralWorkers}, featErrDisable: {"err_disable"},
	featRanked: {"order"}, featPacks: {"order", vswitch.Dropping}, featFair: {"order"}, featTimed: {"order"}, featTurns: {"order"},
	featRED: {"admission"}, featAIFO: {"admission"}, featCoDel: {"admission"}, featShadow: {"admission"}}

// builtIn are the keys of what is no registered feature.
var builtIn = []string{"push_out", "policy", "order", "admission", "choose", "watchdog", "err_disable", vswitch.Dropping, vswitch.SeveralWorkers}

// needs are the pairs that are not of two keys of a switch there: stages begin at a fixed
// threshold, and a queue has one order and one law of marks.
var needs = [][2]feature{{featGentle, featDynamic}, {featPolicy, featPacks}, {featECN, featPI}}

// exclude reports whether two features cannot be in one switch, the first of them first.
func exclude(a, b feature) bool {
	has := func(key string) bool { return slices.Contains(keys[a], key) || slices.Contains(keys[b], key) }
	return slices.Contains(needs, [2]feature{a, b}) || vswitch.Excluded(vswitch.OneSwitch, "", has) != nil
}

// excluded are the features that cannot stand beside each one and come after it.
var excluded = sync.OnceValue(func() (v [numFeatures]features) {
	for a := range numFeatures {
		for b := a + 1; b < numFeatures; b++ {
			if exclude(a, b) {
				v[a] = v[a].with(b)
			}
		}
	}
	return v
})

// possible takes out of a set what cannot stand beside what comes before it.
func (f features) possible() features {
	for a, others := range excluded() {
		if f.has(feature(a)) {
			f &^= others
		}
	}
	return f
}

// The names of features in the table are those under which they are registered.
func TestKeysOfExclusions(t *testing.T) {
	n := 0
	for x := range keys {
		for _, key := range keys[x] {
			if !slices.Contains(builtIn, key) && vswitch.Find(key) == nil {
				t.Errorf("%s: no feature is named %s", featureNames[x], key)
			}
		}
		for y := range keys {
			if x < y && exclude(feature(x), feature(y)) {
				n++
			}
		}
	}
	if n <= len(needs) {
		t.Errorf("%d pairs are excluded: the table is empty", n)
	}
}

// changeable is what may come and go while the switch forwards without making
// less of what lossless classes have.
const changeable features = 1<<featRoCC | 1<<featQCN | 1<<featTelemetry | 1<<featLists | 1<<featECN | 1<<featWatchdog | 1<<featRates | 1<<featPushOut |
	1<<featHULL | 1<<featFlowRadar | 1<<featClock | 1<<featLLDP | 1<<featWatch | 1<<featLoops |
	1<<featPolicy | 1<<featRanked | 1<<featPacks | 1<<featFair | 1<<featTimed | 1<<featTurns | 1<<featRED | 1<<featAIFO | 1<<featCoDel | 1<<featPI |
	1<<featErrDisable | 1<<featStorm | 1<<featFloods | 1<<featLimits

// The switch has four ports of 10 Gb/s, with a neighbour at each that is a
// microsecond away. Classes 3 and 4 are lossless. Of the addresses of host p,
// behind port p, the last byte is p+1.
const (
	worldPorts = 4
	worldRate  = 10_000_000_000
	cable      = frame.Microsecond
	tick       = 200 * frame.Nanosecond // how late a neighbour may be
	lossless   = 1<<3 | 1<<4
	places     = 8
	stormRate  = 1_000_000
)

// change returns another set, into which the switch may be changed.
func (f features) change(by features) features {
	if by &= changeable; f.has(featEscape) { // frames of a flow would be of two, see port
		by = by.without(featTelemetry)
	}
	return f.toggled(by).possible()
}

// config is that of a switch with these features.
func (f features) config() *vswitch.Config {
	cfg := &vswitch.Config{Name: "s", ID: 7, MAC: deviceMAC, Seed: 1, Class: vswitch.DefaultClassMaps(), PFC: vswitch.PFCConfig{Mode: pfc.PFC, Classes: lossless, Quanta: 400},
		Buffer: vswitch.BufferConfig{Size: 1 << 20, XOFF: 20_000, XONOffset: 4_000, Response: 3 * tick}}
	for i := range worldPorts {
		cfg.Ports = append(cfg.Ports, vswitch.PortConfig{Name: string(rune('a' + i)), Enabled: true, Trust: vswitch.TrustDSCP, CableDelay: cable,
			Scheduler: scheduler.PortConfig{Rate: worldRate, Overhead: scheduler.EthernetOverhead}})
	}
	f.forwarding(cfg)
	for i := range cfg.Ports {
		f.port(i, &cfg.Ports[i])
	}
	if f.has(featEscape) {
		cfg.Class.Queue[6] = 7
		cfg.Options = cfg.Options.With(escapepoint.Name, escapepoint.Config{Queue: 6, Config: escape.Config{Slots: places, Flows: 32, PerFlow: places, Reclaim: 50 * frame.Microsecond}})
	}
	if f.has(featGentle) {
		// The last stage of all who send must be slower than the queue that they send to,
		// which its neighbour slows to C/32 and higher classes hold up.
		cfg.Options = cfg.Options.With(gfcpoint.Name, gfcpoint.Config{Stages: pfc.MaxStages})
	}
	if f.has(featCrossbar) {
		cfg.Options = cfg.Options.With(crossbarpoint.Name, crossbarpoint.Config{SkipBlocked: true, Egress: 20_000})
	}
	if f.has(featTelemetry) {
		cfg.Options = cfg.Options.With(intpoint.Name, intpoint.Config{})
	}
	if f.has(featWatchdog) {
		cfg.PFC.Watchdog = pfc.Watchdog{Detect: 60 * frame.Microsecond}
	}
	if f.has(featErrDisable) {
		cfg.PFC.ErrDisable = 100 * frame.Microsecond
	}
	if f.has(featFewChunks) {
		cfg.MaxFrames = 1500
	}
	if f.has(featFloods) {
		cfg.Buffer.FloodShare = 1.0 / 8
	}
	if f.has(featOnlooker) {
		cfg.Options = cfg.Options.With(onlooking, true)
	}
	if f.has(featLedger) {
		cfg.Options = cfg.Options.With(ledgered, true)
	}
	if f.has(featLimits) {
		cfg.Buffer.QueueLimit, cfg.Buffer.IngressLimit = 9_000, 12_000
	}
	if f.has(featDynamic) {
		cfg.Buffer.XOFF, cfg.Buffer.XONOffset, cfg.Buffer.LosslessAlpha = 0, 0, 1.0/32
	}
	if f.has(featLists) {
		f.lists(cfg)
	}
	if f.has(featFlowRadar) {
		cfg.Options = cfg.Options.With(flowpoint.Name, flowpoint.Config{Slot: 50 * frame.Microsecond, Exact: 64})
	}
	if f.has(featClock) {
		o := clocksync.Options{Config: clocksync.Config{Root: true, Accept: clocksync.NoPort, Backup: clocksync.NoPort, Interval: 20 * frame.Microsecond}, Domain: clocksync.DefaultDomain}
		o.Transmit.Add(1)
		o.Transmit.Add(2)
		cfg.Options = cfg.Options.With(boundary.Name, o)
	}
	if f.has(featLLDP) {
		cfg.Options = cfg.Options.With(lldppoint.Name, lldppoint.Options{Interval: frame.Second, Hold: 4})
	}
	if f.has(featLoops) {
		cfg.Options = cfg.Options.With(looppoint.Name, looppoint.Options{Interval: frame.Millisecond, Shut: frame.Second})
	}
	if f.has(featWatch) {
		cfg.Options = cfg.Options.With(mirrorpoint.Name, mirrorpoint.Config{Sessions: []mirrorpoint.SessionConfig{{Name: "w", Port: worldPorts - 1, OneIn: 9}}})
	}
	return cfg
}

// forwarding lays out bridges and routers.
func (f features) forwarding(cfg *vswitch.Config) {
	routed := 0 // ports below are routed
	switch {
	case f.routed() && f.has(featVLAN):
		routed = 2
	case f.routed():
		routed = worldPorts
	}
	if f.has(featVLAN) {
		v := vswitch.VLANConfig{ID: 10, Name: "ten"}
		if routed > 0 {
			v.Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.10.254/24")}
		}
		cfg.VLANs = []vswitch.VLANConfig{v}
	}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		switch {
		case i < routed:
			p.Addresses = []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.0.%d.254/24", i))}
		case f.has(featVLAN):
			if p.VLANMode = vswitch.VLANTrunk; i == worldPorts-1 {
				p.VLANMode, p.PVID = vswitch.VLANAccess, 10
			}
			cfg.FDB.Static = append(cfg.FDB.Static, vswitch.StaticMAC{VLAN: 10, MAC: host(i + 1), Port: uint16(i)})
		default:
			cfg.FDB.Static = append(cfg.FDB.Static, vswitch.StaticMAC{VLAN: 1, MAC: host(i + 1), Port: uint16(i)})
		}
		if routed > 0 {
			cfg.Neighbors = append(cfg.Neighbors, vswitch.StaticNeighbor{Addr: f.address(i), MAC: host(i + 1)})
		}
	}
	if f.has(featPaths) {
		cfg.Paths = vswitch.PathsConfig{Choose: pipeline.ChooseAdaptive, Thresholds: []uint64{2000, 8000}, Assigned: f.has(featCrossbar)}
		cfg.Routes = []vswitch.Route{{Prefix: netip.MustParsePrefix("20.0.0.0/8"), NextHops: []vswitch.NextHop{{Via: f.address(0)}, {Via: f.address(1)}}}}
	}
}

func (f features) routed() bool { return f.has(featRouting) || f.has(featPaths) }

// address is that of the host behind a port.
func (f features) address(port int) netip.Addr {
	subnet := byte(port)
	if f.has(featVLAN) && port >= 2 {
		subnet = 10
	}
	return netip.AddrFrom4([4]byte{10, 0, subnet, byte(port + 1)})
}

func (f features) port(i int, p *vswitch.PortConfig) {
	if f.has(featRoCC) {
		r := rocc.For(worldRate)
		r.QRef, r.QMid, r.QMax, r.Period = 3_000, 6_000, 9_000, 10*frame.Microsecond
		p.Options = p.Options.With(roccpoint.Name, roccpoint.Config{Queues: 0x7f, Params: r})
	}
	if f.has(featQCN) {
		p.Options = p.Options.With(qcnpoint.Name, qcnpoint.Config{Queues: 0x7f, Params: qcn.Params{SetPoint: 3000, Weight: 2, Sample: 6000}})
	}
	escapes := f.has(featEscape) && i > 0
	if escapes {
		p.Options = p.Options.With(escapepoint.Name, escapepoint.Neighbor{})
	}
	if f.has(featTelemetry) {
		edge := intpoint.Edge{Sink: i == 1}
		if !escapes { // a header that the switch puts in makes another flow of what its neighbour sends
			edge.Source = inband.INTMD
		}
		p.Options = p.Options.With(intpoint.Name, edge)
	}
	if f.has(featHULL) {
		p.Options = p.Options.With(hulllink.Name, hulllink.Config{Queues: 0x7f, Params: hull.Params{Drain: 0.5, Threshold: 3000}})
	}
	if f.has(featSlack) {
		p.Edge = i == 0 || i == 1 && !escapes
		p.Options = p.Options.With(lstfpoint.Name, lstfpoint.Config{Queues: 0x7f, Policy: lstf.Policy{Of: frame.Millisecond}})
	}
	if f.has(featLossRadar) {
		p.Options = p.Options.With(losspoint.Name, losspoint.Config{Queues: 0x7f, Config: lossradar.Config{Shape: lossradar.Shape{Cells: 64, Hashes: 3}, Timing: lossradar.Timing{Period: 100 * frame.Microsecond, Timeout: 20 * frame.Microsecond}}})
	}
	q := &p.Scheduler.Queues
	if f.has(featStorm) {
		p.Storm = vswitch.StormControl{Broadcast: stormRate, Multicast: stormRate, UnknownUnicast: stormRate}
	}
	f.orders(q)
	if f.has(featPolicy) {
		q[1].Order = policy.Order{Text: sharedPolicy, Port: i}
		if f.has(featWorkers) { // a buffer is of one
			q[1].Order = policy.Order{Text: "q = Queue(8KB); q.admPrio = value; q.procPrio = value;"}
		}
	}
	if f.has(featECN) {
		for k := range q {
			q[k].ECN = scheduler.ECN{KMin: 2000, KMax: 8000, PMax: 0.5}
		}
	}
	if f.has(featPI) {
		for k := range q {
			q[k].ECN.PI = scheduler.PI{Ref: 3000, A: 2e-5, B: 1e-5, Period: 5 * frame.Microsecond}
		}
	}
	if f.has(featRates) {
		q[0].Weight, q[1].Weight = 1, 3
		q[4].MaxRate, q[4].Burst = worldRate/3, 3000
	}
	if f.has(featPushOut) {
		p.Scheduler.PushOut = scheduler.PushOut{Port: 12_000, Queue: 8_000}
	}
	if f.has(featWorkers) {
		p.Worker = i % 2
	}
	if f.has(featLists) {
		p.ACL = "in"
	}
}

// orders says how queues are served and who is admitted to them.
func (f features) orders(q *[scheduler.NumQueues]scheduler.QueueConfig) {
	if f.has(featRanked) {
		q[rankedClass].Order, q[rankedClass].Rank = orders.Ranked{}, scheduler.RankSize
	}
	if f.has(featPacks) {
		q[packsClass].Order, q[packsClass].Rank = orders.PACKS{Queues: 4, Depth: 4, Window: 20, Sample: 1, K: 100}, scheduler.RankSize
	}
	if f.has(featFair) {
		q[2].Order = orders.FQ{Flows: 16, CoDel: orders.CoDel{Target: 5 * frame.Microsecond, Interval: 20 * frame.Microsecond}}
		q[4].Order = q[2].Order // whose frames CoDel spares
	}
	if f.has(featTimed) {
		q[5].Order = orders.Calendar{Rate: worldRate / 4, Flows: 16}
	}
	if f.has(featTurns) {
		q[4].Order = orders.VOQ{}
	}
	if f.has(featRED) {
		q[0].Admission = orders.RED{Min: 2_000, Max: 8_000, PMax: 0.2, Weight: 4}
	}
	if f.has(featAIFO) {
		q[2].Admission, q[2].Rank = orders.AIFO{Size: 12, Window: 20, Sample: 1, K: 100}, scheduler.RankSize
	}
	if f.has(featCoDel) {
		q[5].Admission = orders.CoDel{Target: 5 * frame.Microsecond, Interval: 20 * frame.Microsecond}
	}
	if f.has(featShadow) {
		q[1].Admission = policy.Shadow{Text: "q = Queue(8KB); q.admPrio = srpt; q.procPrio = srpt;"}
	}
}

// sharedPolicy pushes frames out that wait at other ports.
const sharedPolicy = "q[1..4] = Queue(8KB); b = Buffer(12KB, q[1..4]); a = Port(100%, q[1]); b2 = Port(100%, q[2]); c = Port(100%, q[3]); d = Port(100%, q[4]);"

// lists drops datagrams for port 53, polices those for port 54, and copies those
// for port 55 to port d.
func (f features) lists(cfg *vswitch.Config) {
	cfg.Mirrors = []vswitch.Mirror{{Name: "m", Port: worldPorts - 1, Truncate: 100}}
	rule := func(port uint16, a pipeline.Action, p *vswitch.Police) vswitch.ACLRule {
		var m pipeline.Match
		m.MatchDstPort(port, port)
		return vswitch.ACLRule{Match: m, Action: a, Police: p}
	}
	cfg.ACLs = []vswitch.ACL{{Name: "in", Default: pipeline.Action{Ops: pipeline.OpPermit}, Rules: []vswitch.ACLRule{
		rule(53, pipeline.Action{Ops: pipeline.OpDrop}, nil),
		rule(54, pipeline.Action{Ops: pipeline.OpPermit}, &vswitch.Police{Rate: worldRate / 10, Burst: 4000}),
		rule(55, pipeline.Action{Ops: pipeline.OpPermit | pipeline.OpMirror}, nil),
	}}}
}

// frameOf is a frame of a flow from the host behind one port to that behind
// another, or to the group of next hops, as the first host sends it.
func (f features) frameOf(from, to int, fl flow, id uint32, bytes int) []byte {
	src, dst := f.address(from), f.address(to)
	if fl.group {
		dst = netip.MustParseAddr("20.0.0.1")
	}
	mac := host(to + 1)
	if f.routed() && (fl.group || !f.has(featVLAN) || from < 2 || to < 2) {
		mac = deviceMAC
	}
	layers := []wt.Layer{wt.Eth(mac, host(from+1))}
	if f.has(featVLAN) && from != worldPorts-1 && !(f.routed() && from < 2) {
		layers = append(layers, wt.VLAN(10, 0))
	}
	layers = append(layers, wt.IPv4(src.String(), dst.String(), wt.TOS(fl.class<<5|2)), wt.UDP(1000+uint16(fl.class)<<4+uint16(fl.n), fl.dport))
	if fl.dport == roceUDP {
		layers = append(layers, wt.BTH(roceMiddle, uint32(fl.n), id))
	}
	b := wt.Frame(append(layers, wt.Payload(label(id)), wt.Zeros(max(0, bytes-80)))...)
	return b
}
