package config

import (
	"net/netip"

	intpoint "gswitch/int/point"
	"gswitch/section"
	"gswitch/units"
)

// Config is the whole document.
type Config struct {
	Version  int      `yaml:"version" need:"yes" range:"1,1" doc:"Version of this format: 1."`
	Workers  []Worker `yaml:"workers" doc:"Threads that forward. One adaptive worker, not pinned, if left out."`
	Memory   Memory   `yaml:"memory" doc:"The packet memory that all ports share."`
	Control  Control  `yaml:"control" doc:"Where the API, the command line and Prometheus reach the daemon."`
	Metrics  Metrics  `yaml:"metrics" doc:"What /metrics shows."`
	Export   *Export  `yaml:"export" doc:"Where the reports of the switches go: digests of lossradar, slots of flows. Nowhere if left out."`
	Switches []Switch `yaml:"switches" need:"yes" id:"name" doc:"The switches of this process."`
}

// Worker is one forwarding thread.
type Worker struct {
	CPU  *int   `yaml:"cpu" range:"0,4095" doc:"The CPU it is pinned to. Not pinned if left out."`
	Poll string `yaml:"poll" enum:"spin,adaptive,sleep" default:"adaptive" doc:"spin: never sleeps. adaptive: spins while busy. sleep: waits in the kernel after every pass."`
}

// Memory is the arena of frames.
type Memory struct {
	Chunk     int    `yaml:"chunk" enum:"2048,4096" default:"2048" doc:"Bytes of one chunk. A frame that is larger takes several."`
	Frames    int    `yaml:"frames" range:"1024,16777216" doc:"Number of chunks. Computed from ports, queues and buffers if left out."`
	HugePages string `yaml:"hugepages" enum:"auto,off" default:"auto" doc:"auto: the memory is in huge pages where enough are reserved."`
}

// Metrics says what /metrics shows.
type Metrics struct {
	Series string `yaml:"series" enum:"all,used" default:"all" doc:"used: no series of queues and classes that had no frame since the start. An idle switch of 64 ports has thousands of them."`
}

// Switch is one switch node.
type Switch struct {
	Name       string       `yaml:"name" need:"yes" doc:"Name, unique in the document."`
	ID         int          `yaml:"id" range:"1,4095" doc:"12-bit identity in telemetry. Its place in the list, from 1, if left out."`
	MAC        *MAC         `yaml:"mac" doc:"The switch's own address. Derived from its name if left out."`
	Seed       uint64       `yaml:"seed" doc:"Seed of flow hashing and random marking. Derived from the name if left out, so that switches in a row hash differently."`
	Loopback   []netip.Addr `yaml:"loopback" doc:"Addresses of the switch itself, reachable through every port. The first is its router ID."`
	Hash       string       `yaml:"hash" enum:"five-tuple,symmetric" default:"five-tuple" doc:"How flows are distinguished. symmetric: both directions hash alike."`
	HashFields []string     `yaml:"hash_fields" enum:"src,dst,src_port,dst_port,protocol,label" doc:"The fields that distinguish flows, wherever something goes by flow. label: that of IPv6. All if left out, but no label where hash is symmetric."`
	Strict     bool         `yaml:"strict" doc:"true: drop bridged frames too whose network or transport header is malformed."`
	Redirects  *bool        `yaml:"redirects" default:"true" doc:"false: senders are not redirected (ICMP, ICMPv6) whose packets leave by the network that they came from."`
	ICMPRate   int          `yaml:"icmp_rate" range:"1,1000000" default:"1000" doc:"Most ICMP errors per second that the switch sends."`

	Ports     []Port            `yaml:"ports" need:"yes" id:"name" doc:"The ports."`
	VLANs     []VLAN            `yaml:"vlans" id:"id" doc:"Names and addresses of VLANs. A VLAN that a port uses exists without being listed."`
	Classes   Classes           `yaml:"classes" doc:"How a priority in a frame becomes a traffic class."`
	QoS       map[string]QoS    `yaml:"qos" doc:"Queue profiles by name."`
	Buffer    Buffer            `yaml:"buffer" doc:"The shared packet buffer."`
	PFC       PFC               `yaml:"pfc" doc:"Priority flow control (IEEE 802.1Qbb) on all ports."`
	Telemetry intpoint.Section  `yaml:"telemetry" doc:"In-band telemetry: what the switch writes into data frames that ask for it."`
	ACLs      map[string][]Rule `yaml:"acls" doc:"Access lists by name. A port applies one."`
	FDB       FDB               `yaml:"fdb" doc:"The forwarding database of layer 2."`
	Routes    []Route           `yaml:"routes" id:"prefix" doc:"Static routes."`
	Paths     *Paths            `yaml:"paths" doc:"How one of several next hops is chosen for a frame. By flow if left out."`
	Neighbors []Neighbor        `yaml:"neighbors" id:"address" doc:"Static neighbours (ARP, neighbour discovery)."`
	Mirrors   []Mirror          `yaml:"mirrors" id:"name" doc:"Mirror sessions that access lists copy frames to."`

	Features section.Extra[switchFeatures] // as they registered themselves

	sharing int // switches of the document: set by Resolved
}

// Port is one port of a switch: over an interface, a wire or a pcap file.
type Port struct {
	Name      string `yaml:"name" doc:"Name, unique in the switch. The interface or the wire names it if left out."`
	Interface string `yaml:"interface" doc:"Network interface that the port takes over. One of interface, wire, pcap, tap."`
	Wire      string `yaml:"wire" doc:"In-process link: exactly two ports of the document name the same wire."`
	Pcap      *Pcap  `yaml:"pcap" doc:"Capture files in place of a link."`
	Tap       *Tap   `yaml:"tap" doc:"TAP interface that the port makes in the kernel, as the twin of a routed port: routing daemons use it as if it were that port."`

	NetNS    string  `yaml:"netns" doc:"Network namespace of the interface, or of the TAP interface, a name under /run/netns or a path. The daemon's own if left out."`
	Mode     string  `yaml:"mode" enum:"auto,zerocopy,native,generic" default:"auto" doc:"AF_XDP mode. auto takes the first that works, in this order."`
	Queues   int     `yaml:"queues" range:"1,256" doc:"Receive and transmit queues. All that the interface has if left out."`
	Workers  []int   `yaml:"workers" doc:"Workers, counted from 0, over which the queues are spread. Ports are dealt out in turn if left out."`
	BusyPoll int     `yaml:"busy_poll" range:"0,1024" doc:"Frames that one receive call may take in the driver's own context, in place of interrupts, where the driver can; 64 is usual. 0: off. The worker makes system calls while idle then."`
	Take     bool    `yaml:"take" doc:"true: the interface is taken over even though it is the loopback or carries the default route or the SSH session that starts the daemon. Otherwise such a port is refused, unless it has a filter."`
	Faces    string  `yaml:"faces" enum:"host,switch" doc:"What the neighbour is. host: notices to senders and filled-in telemetry are forged and dropped on arrival, and a watchdog ends pauses that do not end. switch if left out of wires, files and the ports of escape, else host."`
	Filter   *Filter `yaml:"filter" doc:"Which frames the switch takes; the kernel keeps the rest. All if left out."`

	Enabled *bool      `yaml:"enabled" default:"true" doc:"false: administratively down."`
	Rate    units.Rate `yaml:"rate" default:"unlimited" doc:"Speed of the emulated link."`
	Framing
	Burst  *units.Duration `yaml:"burst" default:"50us" doc:"How far the port may catch up when a worker was late. 0s: never."`
	Delay  units.Duration  `yaml:"delay" doc:"Propagation delay of the emulated cable: what leaves here arrives so much later, and headroom is computed with it."`
	Faults *Faults         `yaml:"faults" doc:"What goes wrong, on purpose, with the frames that leave here. Nothing if left out."`
	MTU    int             `yaml:"mtu" range:"68,9216" default:"1500" doc:"Largest network-layer packet in bytes: a frame has 14 more, and 4 for each VLAN tag."`

	MinFrame  int                   `yaml:"min_frame" range:"14,60" default:"14" doc:"Shortest frame that is taken, in bytes without checksum. 60 on a real wire; hosts on virtual links do not pad."`
	Trust     string                `yaml:"trust" enum:"none,pcp,dscp" default:"pcp" doc:"Which field of a frame chooses its class."`
	Class     int                   `yaml:"class" range:"0,7" default:"0" doc:"Class of frames without such a field."`
	VLAN      *PortVLAN             `yaml:"vlan" doc:"VLAN membership. Transparent if left out: tags pass untouched and every frame counts as VLAN 1."`
	Learn     *bool                 `yaml:"learn" default:"true" doc:"false: source addresses are not learned here."`
	Isolated  bool                  `yaml:"isolated" doc:"true: exchanges no frames with other isolated ports."`
	Storm     *StormControl         `yaml:"storm_control" doc:"Limits on flooded traffic that arrives here."`
	Flood     *Flood                `yaml:"flood" doc:"Which frames are flooded to this port. All if left out."`
	Addresses []netip.Prefix        `yaml:"address" doc:"Addresses with prefix length: makes it a routed port, outside all VLANs."`
	ACL       string                `yaml:"acl" doc:"Access list for frames that arrive here."`
	QoS       string                `yaml:"qos" doc:"Queue profile. Eight strict queues if left out."`
	Lossless  *PortLossless         `yaml:"lossless" doc:"What differs from buffer.lossless for frames that arrive here. Nothing if left out."`
	Watchdog  *Watchdog             `yaml:"watchdog" doc:"What happens to queues of this port that stay paused, in place of pfc.watchdog. {action: off}: nothing, also towards a host."`
	Telemetry *intpoint.EdgeSection `yaml:"telemetry" doc:"Role at the edge of the telemetry domain, for hosts without telemetry."`
}

// Filter selects frames in the kernel. A frame is taken if anything matches.
type Filter struct {
	EtherTypes []EtherType `yaml:"ethertypes" doc:"EtherTypes, after up to two VLAN tags."`
	MACs       []MAC       `yaml:"macs" doc:"Destination MAC addresses."`
	Protocols  []Protocol  `yaml:"protocols" doc:"IP protocols."`
	Ports      []int       `yaml:"ports" range:"1,65535" doc:"TCP or UDP destination ports."`
	Invert     bool        `yaml:"invert" doc:"true: take everything but the selection."`
}

// Pcap makes a port of capture files.
type Pcap struct {
	Read  string `yaml:"read" doc:"File whose frames arrive, at the times of the file."`
	Write string `yaml:"write" doc:"File that takes the frames that leave."`
	Fast  bool   `yaml:"fast" doc:"true: read as fast as possible, whatever the times in the file."`
}

// Tap makes a port the way to the twin of a routed port in the kernel.
type Tap struct {
	Of    string `yaml:"of" need:"yes" doc:"Routed port whose twin it is. The interface has its addresses and MTU, the switch's MAC address, and a carrier while that port has a link."`
	Name  string `yaml:"name" doc:"Name of the interface. That of the port, which is of with -tap behind it, if left out."`
	Limit int    `yaml:"limit" range:"0,10000000" default:"10000" doc:"Most frames per second that go to the kernel, of each: routing protocols, ARP and ICMPv6, all else. 0: no limit."`
}

// PortVLAN is the VLAN membership of a port.
type PortVLAN struct {
	Access int     `yaml:"access" range:"1,4094" doc:"Untagged member of this one VLAN."`
	Trunk  []VLANs `yaml:"trunk" single:"yes" doc:"Tagged member of these VLANs: [10, 20-29], or one number or range without brackets."`
	Native int     `yaml:"native" range:"1,4094" doc:"VLAN of untagged frames on a trunk. They are dropped if left out."`
}

// Flood says what is flooded to a port.
type Flood struct {
	Broadcast *bool `yaml:"broadcast" default:"true" doc:"false: no broadcast leaves here."`
	Multicast *bool `yaml:"multicast" default:"true" doc:"false: no multicast leaves here. IPv6 hosts find each other by multicast."`
	Unknown   *bool `yaml:"unknown" default:"true" doc:"false: no unicast to an address leaves here that is not known to be behind the port."`
}

// StormControl limits flooded traffic.
type StormControl struct {
	Broadcast units.Rate `yaml:"broadcast" default:"unlimited" doc:"Limit of broadcast."`
	Multicast units.Rate `yaml:"multicast" default:"unlimited" doc:"Limit of multicast."`
	Unknown   units.Rate `yaml:"unknown" default:"unlimited" doc:"Limit of unicast to unknown addresses."`
}

// VLAN names a VLAN and gives the switch addresses in it.
type VLAN struct {
	ID        int            `yaml:"id" need:"yes" range:"1,4094" doc:"VLAN ID."`
	Name      string         `yaml:"name" doc:"Name."`
	Addresses []netip.Prefix `yaml:"address" doc:"Addresses of the switch in this VLAN: it routes between VLANs that have one."`
}

// Classes maps priorities to traffic classes. A class is also a queue.
type Classes struct {
	PCP   []int       `yaml:"pcp" range:"0,7" doc:"Class of the priorities 0 to 7 of a VLAN tag: eight numbers. The same number if left out."`
	DSCP  map[int]int `yaml:"dscp" keys:"0,63" range:"0,7" doc:"Class of DSCP values. The upper three bits for those not listed."`
	Queue []int       `yaml:"queue" range:"0,7" doc:"Egress queue of the classes 0 to 7: eight numbers. The same number if left out."`
}

// QoS is a queue profile.
type QoS struct {
	Queues  []Queue  `yaml:"queues" id:"queue" doc:"The queues that differ from strict, unlimited, unmarked. None if left out."`
	PushOut *PushOut `yaml:"push_out" doc:"Limits at which the least valuable frame that waits is dropped, in place of the one that comes. None if left out. Queues of lossless classes neither count nor lose anything."`

	Features section.Extra[queueFeatures] // of the switch, as they registered themselves
}

// Queue is one egress queue of a profile.
type Queue struct {
	Queue   int        `yaml:"queue" range:"0,7" doc:"Number. Among strict queues the higher goes first."`
	Strict  bool       `yaml:"strict" doc:"true: before all weighted queues. The default where no weight is given."`
	Weight  int        `yaml:"weight" range:"1,1000" doc:"Share among the weighted queues (deficit round robin)."`
	MaxRate units.Rate `yaml:"max_rate" default:"unlimited" doc:"Upper limit."`
	Burst   units.Size `yaml:"burst" range:"0,1073741824" doc:"Bytes that it may send ahead of max_rate after an idle time. None if left out."`

	Order *Order `yaml:"order" doc:"How its frames leave. First in, first out if left out. The port needs a rate."`
	Ranking
	Admission *Admission `yaml:"admission" doc:"What it drops of itself before it is full. Nothing if left out. The port needs a rate."`
	Policy    *Policy    `yaml:"policy" doc:"How it is buffered and served, in OpenQueue (docs/POLICIES.md), in place of order. The port needs a rate."`
	Shadow    *Policy    `yaml:"shadow" doc:"A policy that is run on records of what comes, and touches no frame: what it would have sent and dropped (gswitch policy show)."`

	ECN *ECN `yaml:"ecn" doc:"ECN marking at dequeue."`
	PI  *PI  `yaml:"pi" doc:"ECN marking by a controller of the depth, in place of ecn."`
}

// Ranking is how frames of a queue compare: what documents of switches and scenarios have
// in common.
type Ranking struct {
	Rank       string `yaml:"rank" enum:"dscp,dscp-rising,class,size,slack,priority" doc:"What orders and admissions by rank go by. dscp: the highest code point first, the default. dscp-rising: the lowest. class: the highest. size: the shortest frame. slack: the least slack (see lstf). priority: the least that lstf wrote, whatever the wait (lstf.fixed)."`
	Inversions bool   `yaml:"inversions" doc:"true: frames are counted that leave an egress queue while one of smaller rank waits there (gswitch show queues --order; inversions_total of runs)."`
}

// PI marks with a probability that a proportional-integral controller moves.
type PI struct {
	Ref    units.Size     `yaml:"ref" need:"yes" range:"0,4294967295" doc:"Depth that is held."`
	A      float64        `yaml:"a" need:"yes" range:"0,0.0001" doc:"Probability for each byte above ref."`
	B      float64        `yaml:"b" range:"0,0.0001" doc:"Probability that each byte above ref a period ago takes back; below a."`
	Max    float64        `yaml:"max" range:"0,1" default:"1" doc:"Largest probability, so that it is soon back after a burst."`
	Period units.Duration `yaml:"period" need:"yes" doc:"Time from one update to the next."`
}

// ECN is RED-like marking; kmin = kmax marks like a step.
type ECN struct {
	KMin units.Size `yaml:"kmin" range:"0,4294967295" doc:"Depth from which frames are marked. It stands beside kmax."`
	KMax units.Size `yaml:"kmax" range:"0,4294967295" doc:"Depth from which every frame is marked."`
	PMax float64    `yaml:"pmax" range:"0,1" default:"1" doc:"Probability just below kmax."`
}

// Buffer is the shared packet buffer of a switch.
type Buffer struct {
	Size units.Size `yaml:"size" doc:"Whole buffer, headroom included. What the packet memory holds if left out."`
	LossyRoom
	Reserve  units.Size `yaml:"reserve" range:"0,4294967295" doc:"Bytes of each egress queue that no other can take."`
	Limit    units.Size `yaml:"limit" range:"0,4294967295" doc:"Most bytes of any egress queue, whatever alpha allows. None if left out."`
	Floods   float64    `yaml:"flood_share" range:"0.001,1" default:"0.125" doc:"Copies of floods (unknown unicast, broadcast, multicast) are at most this part of what a port sends while it is backed up and frames for that port alone wait there, and hold at most half of the memory that each port always has. 1: they are like other frames."`
	Lossless Lossless   `yaml:"lossless" doc:"How lossless classes are buffered at ingress."`
}

// Lossless is the ingress side of classes under PFC.
type Lossless struct {
	Alpha float64 `yaml:"alpha" range:"0.001,64" default:"0.125" doc:"Dynamic threshold (XOFF) of an ingress port and class: at most alpha times what is free."`
	LosslessRoom
	Hysteresis units.Size     `yaml:"hysteresis" range:"0,4294967295" default:"4KiB" doc:"How far below XOFF the class must fall before XON."`
	Headroom   Headroom       `yaml:"headroom" default:"auto" doc:"Bytes beyond XOFF for what is still under way. auto: from rate, delay and MTU of each port, and response."`
	Response   units.Duration `yaml:"response" doc:"How long both ends take to act on a pause, beyond cable and frames: the loops of the workers. If left out: 20ms, or as much as half of the buffer has room for as headroom; 50us where each worker spins on a processor of its own (poll: spin, cpu), where headroom is given, and with input queues."`
}

// PortLossless are the thresholds of one port, whose link differs from the others.
type PortLossless struct {
	Alpha    float64    `yaml:"alpha" range:"0.001,64" doc:"In place of that of the buffer."`
	Headroom units.Size `yaml:"headroom" doc:"In place of that of the buffer."`
}

// PFC is priority flow control, or the older pause.
type PFC struct {
	Classes []int `yaml:"classes" range:"0,7" doc:"Lossless classes."`
	Pausing
	Pause    bool      `yaml:"pause" doc:"true: IEEE 802.3x pause of the whole link in place of PFC."`
	Watchdog *Watchdog `yaml:"watchdog" doc:"What happens to a queue that stays paused. If left out there is a watchdog as by its defaults at ports that face hosts, and none at others."`
	Log      *int      `yaml:"log" range:"0,1000000" default:"256" doc:"Pauses that ended which each worker keeps, for gfabric pfc trace: which port asked which, when, and for which egress queues. 0: none."`
}

// Pausing is how pauses are asked for and followed: what documents of switches and
// scenarios have in common.
type Pausing struct {
	Quanta     int            `yaml:"quanta" range:"1,65535" default:"65535" doc:"Pause time that is asked for, in units of 512 bit times."`
	ErrDisable units.Duration `yaml:"err_disable" was:"shun" doc:"For how long a switch disables a port whose neighbour goes on although it was asked to pause, four times. Nobody looks if left out."`
	Response   units.Duration `yaml:"response" doc:"How long after its arrival a pause takes effect, as at devices that are slow to act on it; shorter than the pause. In scenarios at hosts, too. At once if left out."`
}

// Watchdog breaks pause storms.
type Watchdog struct {
	Detect  units.Duration `yaml:"detect" default:"200ms" doc:"Paused without sending anything for so long is a storm."`
	Restore units.Duration `yaml:"restore" default:"400ms" doc:"Without a pause frame for so long the storm is over."`
	Action  string         `yaml:"action" enum:"drop,forward,alert,off" default:"drop" doc:"drop: empty the queue and drop what comes. forward: send in spite of the pause. alert: only count. off: no watchdog."`
}

// Rule is one entry of an access list. The first that matches decides.
type Rule struct {
	Name   string `yaml:"name" doc:"Name in listings."`
	Seq    int    `yaml:"seq" range:"1,1000000" doc:"Place in the list, unique. Ten more than the rule before if left out."`
	Match  Match  `yaml:"match" doc:"What a frame must have. Everything matches if left out."`
	Action string `yaml:"action" enum:"permit,drop" default:"permit" doc:"Whether the frame goes on. Frames that no rule matches go on."`

	SetClass *int    `yaml:"set_class" range:"0,7" doc:"Change the traffic class."`
	SetDSCP  *int    `yaml:"set_dscp" range:"0,63" doc:"Rewrite the DSCP field."`
	SetPCP   *int    `yaml:"set_pcp" range:"0,7" doc:"Rewrite the priority of the VLAN tag."`
	Police   *Police `yaml:"police" doc:"Drop what exceeds a rate."`
	Mirror   string  `yaml:"mirror" doc:"Copy to this mirror session."`
	Redirect string  `yaml:"redirect" doc:"Send to this port, past the tables."`
}

// Match is what a rule looks at. Fields that are left out match anything.
type Match struct {
	SrcMAC    *MAC         `yaml:"src_mac" doc:"Source MAC address."`
	DstMAC    *MAC         `yaml:"dst_mac" doc:"Destination MAC address."`
	EtherType EtherType    `yaml:"ethertype" doc:"A number such as 0x88f7, or ipv4, ipv6, arp."`
	VLAN      int          `yaml:"vlan" range:"1,4094" doc:"VLAN."`
	Class     *int         `yaml:"class" range:"0,7" doc:"Traffic class."`
	Src       netip.Prefix `yaml:"src" doc:"Source network."`
	Dst       netip.Prefix `yaml:"dst" doc:"Destination network."`
	DSCP      *int         `yaml:"dscp" range:"0,63" doc:"DSCP."`
	Protocol  Protocol     `yaml:"protocol" doc:"A number from 1 to 255, or tcp, udp, icmp, icmpv6, igmp, gre, ipip, ospf."`
	SrcPort   PortRange    `yaml:"src_port" doc:"Source port, 80 or 1024-65535."`
	TCPFlags  TCPFlags     `yaml:"tcp_flags" doc:"Flags that must be set, or with ! unset: syn,!ack."`
	Fragment  *bool        `yaml:"fragment" doc:"true: only IP fragments. false: none."`
	DstPort   PortRange    `yaml:"dst_port" doc:"Destination port, 80 or 1024-65535."`
}

// Police is a token bucket.
type Police struct {
	Rate  units.Rate `yaml:"rate" need:"yes" doc:"Rate that passes."`
	Burst units.Size `yaml:"burst" default:"64KiB" doc:"Depth of the bucket."`
}

// FDB is the layer-2 forwarding database.
type FDB struct {
	Ageing  *units.Duration `yaml:"ageing" default:"300s" doc:"A learned address from which no frame came for so long is removed. 0s: never."`
	Max     int             `yaml:"max" range:"1,4194304" default:"65536" doc:"Most addresses."`
	PerPort *int            `yaml:"per_port" range:"0,4194304" doc:"Most addresses that are learned at one port: ever new ones from one host leave room for those of other ports. Half of max if left out. 0: as many as there is room for."`
	Static  []StaticMAC     `yaml:"static" doc:"Entries that neither age nor move."`
}

// StaticMAC is a static entry of the forwarding database.
type StaticMAC struct {
	MAC  MAC    `yaml:"mac" need:"yes" doc:"Address."`
	VLAN int    `yaml:"vlan" range:"1,4094" default:"1" doc:"VLAN."`
	Port string `yaml:"port" need:"yes" doc:"Port."`
}

// Route is a static route. One of via, next_hops, blackhole, unreachable, prohibit.
type Route struct {
	Prefix      netip.Prefix `yaml:"prefix" need:"yes" doc:"Destination."`
	Via         netip.Addr   `yaml:"via" doc:"Next hop: an address of a network of the switch, of either IP version (RFC 8950), or a link-local one with the port behind it, fe80::1%p1."`
	NextHops    []NextHop    `yaml:"next_hops" id:"via" doc:"Several next hops, of which each frame takes one."`
	Choose      string       `yaml:"choose" enum:"hash,scatter,flowlet,weighted,adaptive,least" doc:"How one of next_hops is chosen. As paths.choose says if left out."`
	Blackhole   bool         `yaml:"blackhole" doc:"true: drop."`
	Unreachable bool         `yaml:"unreachable" doc:"true: drop, and answer that the destination cannot be reached."`
	Prohibit    bool         `yaml:"prohibit" doc:"true: drop, and answer that this is prohibited."`
}

// Paths says how one of several next hops is chosen.
type Paths struct {
	Choose     string           `yaml:"choose" enum:"hash,scatter,flowlet,weighted,adaptive,least" default:"hash" doc:"How, where a route does not say it. hash: by flow. scatter: at random, frame by frame. flowlet: at random, anew after each pause of a flow (LetFlow). weighted: by flow, in proportion to the rates of the links, in scenarios to what fits through each way. adaptive: frame by frame, at random among the ports below the lowest threshold that any is below (DeTail). least: the port with the fewest bytes, frame by frame."`
	Thresholds []units.Size     `yaml:"thresholds" doc:"adaptive: up to four, ascending, in bytes that wait at a port in the frame's class and above. [16KiB, 64KiB] if left out."`
	Times      []units.Duration `yaml:"times" doc:"The same as the time that the port takes to send them, for links of different rates."`
	FlowletGap units.Duration   `yaml:"flowlet_gap" default:"500us" doc:"flowlet: the pause after which a flow may go another way."`
	Assigned   bool             `yaml:"assigned" doc:"true: a frame counts for its port from when that is chosen, also while it waits at the crossbar, if the switch has one."`
	Exempt     []int            `yaml:"exempt" range:"0,7" doc:"Classes whose frames go by flow all the same: probes and mirrored frames."`
}

// NextHop is one way of a route.
type NextHop struct {
	Via    netip.Addr `yaml:"via" need:"yes" doc:"Next hop, as routes.via."`
	Weight int        `yaml:"weight" range:"1,256" default:"1" doc:"Share."`
}

// Neighbor is a static neighbour.
type Neighbor struct {
	Address netip.Addr `yaml:"address" need:"yes" doc:"Network address."`
	MAC     MAC        `yaml:"mac" need:"yes" doc:"MAC address."`
}

// Mirror is a session that takes copies of frames.
type Mirror struct {
	Name string `yaml:"name" need:"yes" doc:"Name."`
	Port string `yaml:"port" need:"yes" doc:"Port that sends the copies."`
	Snap int    `yaml:"snap" range:"64,9216" doc:"Bytes of a frame that are copied. All if left out."`
}
