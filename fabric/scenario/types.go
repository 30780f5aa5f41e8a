package scenario

import (
	"go.yaml.in/yaml/v3"

	"gswitch/config"
	"gswitch/fabric"
	intpoint "gswitch/int/point"
	"gswitch/section"
	"gswitch/units"
)

// Document is a scenario as written.
type Document struct {
	Version int    `yaml:"version" need:"yes" range:"1,1" doc:"Version of this format: 1."`
	Name    string `yaml:"name" doc:"Name of the scenario. That of the file if left out."`
	Title   string `yaml:"title" doc:"One line for reports."`
	Paper   *Paper `yaml:"paper" doc:"The published result that the scenario is about."`

	Topology    fabric.Spec `yaml:"topology" need:"yes" doc:"The network: a generator or hosts, switches and links."`
	Link        Link        `yaml:"link" doc:"How frames occupy links."`
	Switch      Switch      `yaml:"switch" doc:"What every switch does."`
	PFC         PFC         `yaml:"pfc" doc:"Priority flow control (IEEE 802.1Qbb) of switches and hosts."`
	Hosts       Hosts       `yaml:"hosts" doc:"What every host does."`
	Workload    []Entry     `yaml:"workload" need:"yes" doc:"Which hosts send what to which."`
	Clock       Clock       `yaml:"clock" doc:"One time for all nodes, with a bound on its error (Sundial)."`
	Faults      []Fault     `yaml:"faults" doc:"What goes wrong."`
	Probes      []Probe     `yaml:"probes" id:"name" doc:"Packets that are sent into the network at switches, and traced there (Everflow)."`
	Controller  Controller  `yaml:"controller" doc:"What a controller does about what switches report."`
	QueueReplay QueueReplay `yaml:"queue_replay" doc:"The queues of switches are replayed from the times at which hosts sent packets, and compared with those of the run (DETER)."`
	Measure     Measure     `yaml:"measure" doc:"What is recorded beyond the flows."`

	Duration units.Duration `yaml:"duration" need:"yes" doc:"How long the run takes, in the time of the emulated network. With until done it is the longest."`
	Until    string         `yaml:"until" enum:"time,done" default:"time" doc:"time: the run takes the whole duration. done: it ends when every flow has."`
	Seeds    []uint64       `yaml:"seeds" doc:"Each gives a run. 1 if left out."`
	Scale    int            `yaml:"scale" range:"1,1000000" doc:"Recommended dilation on real frames (--on netns): rates are divided and times multiplied by it. Found by trying, as gfabric fit does, if left out. Without meaning in virtual time."`

	Variants []Variant              `yaml:"variants" doc:"Runs side by side: each has a name and sets some keys."`
	Sweep    map[string][]yaml.Node `yaml:"sweep" doc:"Keys of this document, each with a list of values: every combination is run, of every variant."`
	Expect   []string               `yaml:"expect" doc:"What must come out, such as hpcc.slowdown_p99 < 3."`
	Deviates []Deviation            `yaml:"deviates" doc:"What the paper reports and what does not come out here, and why. It fails where the claim holds after all."`
	Short    map[string]yaml.Node   `yaml:"short" doc:"Keys that a short run (--short) sets before everything else."`
}

// Deviation is a published result that is known not to be reproduced.
type Deviation struct {
	Claim string `yaml:"claim" need:"yes" doc:"What the paper reports, in the language of expect."`
	Why   string `yaml:"why" need:"yes" doc:"Why it does not come out, as far as that is known."`
}

// Controller acts on the reports of switches.
type Controller struct {
	Blackholes string         `yaml:"blackholes" enum:"leave,move" default:"leave" doc:"move: what is for the destination of a blackholed flow (switch.flowradar) is sent by another of its shortest paths, at the switch behind which it vanishes or the nearest before it that has several."`
	Losses     string         `yaml:"losses" enum:"leave,move" default:"leave" doc:"move: what is for the destinations of frames that a link or a table loses, at random or as a blackhole (switch.lossradar), is sent by other of its shortest paths, at the switch before the link or, where that has none, at those before it."`
	Takes      units.Duration `yaml:"takes" default:"5ms" doc:"From the finding to the route."`
}

// QueueReplay replays the queues of switches.
type QueueReplay struct {
	Enabled    bool           `yaml:"enabled" doc:"true: the run is followed by two replays of its queues, of which in one switches drop only packets that hosts tag as dropped."`
	Bound      units.Duration `yaml:"bound" doc:"By how much times of packets that are inferred from samples are off at most; the paper has 5us. The time of every packet is kept if left out."`
	ClockError units.Duration `yaml:"clock_error" doc:"By how much the clocks of hosts are ahead at most, each of its own. 0 if left out."`
	Hosts      []string       `yaml:"hosts" doc:"Hosts that record: names, ranges such as h1..h4, or all. What others send is not in the replay. All if left out."`
}

// Paper names a published result.
type Paper struct {
	Figure string `yaml:"figure" doc:"Paper and figure."`
	Text   string `yaml:"text" doc:"What the paper reports."`
}

// Link describes how frames occupy links.
type Link struct {
	config.Framing `defaults:"overhead=none"`
	WholeNs        bool `yaml:"whole_ns" doc:"true: the time of a frame is truncated to whole nanoseconds, as ns-3 does."`
}

// Switch is the configuration of every switch.
type Switch struct {
	Buffer config.NetworkBuffer `yaml:"buffer" doc:"The shared packet buffer."`
	ECN    ECN                  `yaml:"ecn" doc:"ECN marking at dequeue, at every egress queue."`
	INT    INT                  `yaml:"int" doc:"In-band telemetry."`

	Features section.Extra[queueFeatures] // of switches, as registered

	Order     config.Order     `yaml:"order" doc:"How the frames of every egress queue leave. First in, first out if left out."`
	Admission config.Admission `yaml:"admission" doc:"What every egress queue drops of itself before it is full, those of lossless classes excepted. Nothing if left out."`

	Policy config.Policy `yaml:"policy" doc:"How every egress queue is buffered and served, in OpenQueue (docs/POLICIES.md), in place of order. All classes wait in one egress queue then, but those under PFC."`
	Shadow config.Policy `yaml:"shadow" doc:"A policy that every egress queue runs on records of what comes, queues of lossless classes excepted, and that touches no frame (shadow_sent_total, ...)."`

	config.Ranking

	PushOut config.PushOut `yaml:"push_out" doc:"Limits of every port at which the least valuable frame that waits is dropped, in place of the one that comes. Queues of lossless classes neither count nor lose anything."`

	Replay bool `yaml:"replay" doc:"true: the run is made twice, first as it stands, and then with what each packet waited as its slack, which every egress queue goes by (see lstf). Results are those of the second: packets that are late left later than in the first."`

	ReplayPriority bool `yaml:"replay_priority" doc:"true: the second run of replay goes by fixed priorities in place of slack: of each packet the instant at which it left the network in the first."`

	OneQueue []string `yaml:"one_queue" doc:"Switches that know no classes: all but lossless ones wait in one egress queue. Names, or ranges such as s1..s4."`

	VOQ bool `yaml:"voq" doc:"true: egress queues serve the ports that frames came by in turn, as input-queued switches do."`

	Paths   config.Paths `yaml:"paths" doc:"How one of several shortest paths is chosen for a frame."`
	Detours []Detour     `yaml:"detours" doc:"Routes that are not the shortest, as after a failure or by mistake. base_rtt: auto and slowdowns do not know of them."`
}

// ECN is marking of frames. Without thresholds and pi there is none.
type ECN struct {
	config.ECN
	At units.Rate `yaml:"at" doc:"Rate of the ports that kmin and kmax, or ref, are meant for; others scale them in proportion. All ports have the same if left out."`
	PI *config.PI `yaml:"pi" doc:"Marking by a controller of the depth, in place of kmin and kmax."`
}

// INT is in-band telemetry. The switch of a daemon writes records of whatever format
// frames have (telemetry.int), and has to be told which links there are. A scenario has
// hosts, too, so it names the format, and knows the links.
type INT struct {
	Mode string `yaml:"mode" enum:"auto" registered:"telemetry" default:"auto" doc:"Format. auto: hpcc where congestion control needs telemetry, hpcc-grow where it does and more than five switches stand between two hosts, else none."`
	intpoint.Stamp
	WholePort bool `yaml:"whole_port" doc:"Use occupancy: port. The next version has this key no more."`
}

// Record returns what records say.
func (t *INT) Record() intpoint.Stamp {
	s := t.Stamp
	if t.WholePort {
		s.Occupancy = "port"
	}
	return s
}

// occupancy refuses the key that there was before beside the one in its place.
func (v *validator) occupancy() {
	if v.sec.Has("switch.int.whole_port") && v.sec.Has("switch.int.occupancy") {
		v.sec.Fail("switch.int.whole_port", "stands beside occupancy; leave this one out")
	}
}

// PFC is priority flow control.
type PFC struct {
	Enabled bool  `yaml:"enabled" doc:"true: the classes are lossless."`
	Classes []int `yaml:"classes" range:"0,7" doc:"Lossless classes. Those of the data if left out."`
	config.Pausing
}

// Hosts is the configuration of every host.
type Hosts struct {
	Payload   units.Size `yaml:"payload" range:"1,9000" default:"1000B" doc:"Payload of a full data frame."`
	CC        string     `yaml:"cc" default:"none" doc:"Congestion control: see gfabric cc list. none keeps to a window of the bandwidth-delay product; with params window: none to nothing but the rate of its link."`
	Verb      string     `yaml:"verb" enum:"send,write" default:"send" doc:"What messages are sent as. write: RDMA writes, whose first packet says how long they are: edges go by it that write slack by size or remaining."`
	Params    Params     `yaml:"params" doc:"Options of the congestion control: see gfabric cc show."`
	Class     int        `yaml:"class" range:"0,7" doc:"Traffic class of data."`
	AckClass  *int       `yaml:"ack_class" range:"0,7" doc:"Class of acknowledgements. That of the data if left out."`
	Weights   []int      `yaml:"weights" range:"0,1000" doc:"Weights of the classes 0 to 7 at the host's port; 0: strict. All strict if left out."`
	BaseRTT   string     `yaml:"base_rtt" default:"auto" doc:"T: the round-trip time of the empty network that all flows assume. auto: the largest over all pairs of hosts."`
	Transport Transport  `yaml:"transport" doc:"Loss recovery."`
	CNP       CNP        `yaml:"cnp" doc:"How a receiver reports congestion marks."`
	config.Sending
	config.Quench
	NoticeDelay units.Duration `yaml:"notice_delay" doc:"How long after its arrival at a host a switch's notice (RoCC, QCN) takes effect there. At once if left out."`
	Turn        string         `yaml:"turn" default:"frame" doc:"How much a flow sends before the next one of its class at the host has its turn: frame, message, or so many bytes of payload. Who may not send is passed over."`
	Overshoot   bool           `yaml:"overshoot" doc:"true: a window may be exceeded by a frame, as in ns-3 models."`
	Policy      config.Policy  `yaml:"policy" doc:"Which flow of its class a host sends of next, in OpenQueue (docs/POLICIES.md), by the next packet of each that may send: arrival is when its message was posted, processing how many packets of that are left. They take turns if left out."`
	Segment     units.Size     `yaml:"segment" range:"0,4294967295" doc:"Pace bursts of so many bytes in place of frames, with one sample of the round-trip time each (TIMELY)."`
	SegmentRate units.Rate     `yaml:"segment_rate" doc:"Rate at which the frames of such a burst follow each other. At line rate if left out."`
	RTTNoise    units.Duration `yaml:"rtt_noise" doc:"Each round-trip time that congestion control gets is longer by a random time of up to so much."`
	LazyPacing  bool           `yaml:"lazy_pacing" doc:"true: a planned departure is only put off, never advanced, when the rate changes (TIMELY)."`
	TCP         TCP            `yaml:"tcp" doc:"Flows are byte streams over TCP in place of messages of queue pairs, by the stack of this project (RFC 9293)."`
	Sizes       Sizes          `yaml:"sizes" doc:"Lengths of frames on the wire in place of those of the real headers, for agreement with other simulators."`
	Overrides   []Override     `yaml:"overrides" doc:"Hosts that differ."`

	Features section.Extra[hostFeatures] // of hosts, as registered
}

// Params are options of an algorithm.
type Params map[string]Scalar

// Transport is loss recovery.
type Transport struct {
	Mode     string         `yaml:"mode" registered:"recovery" default:"go-back-n" doc:"go-back-n: as RoCE NICs do. irn: selective retransmission. irn-go-back-n, irn-no-sack: its ablations. tcp: three duplicate acknowledgements with SACK. newreno: the same without SACK. See gfabric recovery list."`
	Params   Params         `yaml:"params" doc:"Options of the scheme: see gfabric recovery show. Each may stand here or beside it, where those that the scheme does not have mean nothing, since variants may change mode alone."`
	Cap      string         `yaml:"cap" default:"none" doc:"Most frames in flight. none, a number, or auto: the bandwidth-delay product of the longest path."`
	RTOLow   units.Duration `yaml:"rto_low" doc:"Retransmission timeout when few frames are in flight. 0: as rto_high."`
	RTOHigh  units.Duration `yaml:"rto_high" doc:"Retransmission timeout. 0: derived where auto_rto is true, else no timer."`
	AutoRTO  bool           `yaml:"auto_rto" doc:"true: timeouts that are 0 follow from the topology by IRN's rules."`
	AckEvery int            `yaml:"ack_every" range:"0,1000" doc:"Frames to an acknowledgement. 0 or 1: each."`
	RC3      RC3            `yaml:"rc3" doc:"A second loop from the tail of messages, in lower classes (RC3)."`

	config.RecoveryOptions // of all schemes
}

// CNP configures how a receiver reports congestion marks.
type CNP struct {
	Frames   bool           `yaml:"frames" doc:"true: by RoCEv2 notification frames. false: by a bit of each acknowledgement."`
	Interval units.Duration `yaml:"interval" default:"50us" doc:"Least time between two frames for a flow."`
}

// Sizes are lengths of frames on the wire.
type Sizes struct {
	Data   int `yaml:"data" range:"0,1000" doc:"Bytes of a data frame besides payload and telemetry. 0: those of the headers."`
	Ack    int `yaml:"ack" range:"0,1000" doc:"Bytes of an acknowledgement without telemetry."`
	AckINT int `yaml:"ack_int" range:"0,1000" doc:"Bytes of an acknowledgement with telemetry."`
	PFC    int `yaml:"pfc" range:"0,1000" doc:"Bytes of a pause frame."`
}

// Override changes the configuration of some hosts.
type Override struct {
	Hosts     []string   `yaml:"hosts" need:"yes" doc:"Names, ranges such as h1..h4, or all."`
	CC        string     `yaml:"cc" doc:"Congestion control of what they send."`
	Params    Params     `yaml:"params" doc:"Its options."`
	Transport *Transport `yaml:"transport" doc:"Loss recovery of what they send."`
	PFC       *bool      `yaml:"pfc" doc:"false: they neither follow nor send pause frames."`
}

// Variant is one of several alternatives that are compared.
type Variant struct {
	Name  string               `yaml:"name" need:"yes" doc:"Name for reports and expectations: letters, digits and _."`
	Title string               `yaml:"title" doc:"What reports call it. The name if left out."`
	Set   map[string]yaml.Node `yaml:"set" doc:"Keys of this document and their values."`
}
