package scenario

import "gswitch/units"

// Entry is a part of the workload.
type Entry struct {
	Group string         `yaml:"group" doc:"Name of its flows in results. The kind if left out."`
	Kind  string         `yaml:"kind" need:"yes" enum:"poisson,incast,permutation,all-to-all,requests,partition-aggregate,retrievals,saturate,periodic,collective,trace,flows" doc:"Pattern."`
	From  []string       `yaml:"from" doc:"Senders (clients, aggregators): names, ranges such as h1..h4, or all. All if left out, but for the only receiver."`
	To    []string       `yaml:"to" doc:"Receivers (servers, workers). All if left out."`
	Start units.Duration `yaml:"start" doc:"No flow starts before."`
	Stop  units.Duration `yaml:"stop" doc:"No flow starts from here on. The duration if left out."`

	Class     *int       `yaml:"class" range:"0,7" doc:"Traffic class in place of that of the hosts."`
	CC        string     `yaml:"cc" doc:"Congestion control in place of that of the hosts."`
	Params    Params     `yaml:"params" doc:"Its options."`
	Transport *Transport `yaml:"transport" doc:"Loss recovery in place of that of the hosts."`

	TCP *TCP `yaml:"tcp" doc:"TCP in place of what hosts.tcp says. Nothing of that holds then: what is left out has its default."`

	Sizes string     `yaml:"sizes" doc:"Distribution of sizes: a name (gfabric run --help lists them) or a file of bytes and percentages."`
	Bins  []Bin      `yaml:"bins" doc:"Distribution of sizes as ranges."`
	Size  units.Size `yaml:"size" doc:"Bytes of a flow (a request, a query, a message)."`
	Total units.Size `yaml:"total" doc:"incast: bytes of all senders together, striped over them."`

	Load  float64 `yaml:"load" range:"0,100" doc:"poisson, requests: payload offered, as a share of what load_on can carry. incast: share of the rate of all hosts."`
	On    string  `yaml:"load_on" default:"hosts" doc:"poisson, requests: hosts (the links of the senders) or a link such as leaf1:spine1, in that direction."`
	Pick  string  `yaml:"pick" enum:"uniform,permutation,other-rack" default:"uniform" doc:"poisson: who receives. permutation: always the same. other-rack: anybody behind another switch."`
	Count int     `yaml:"count" range:"0,1000000000" doc:"Most flows (poisson), workflows (retrievals), events (incast), rounds (permutation, all-to-all), requests of each client, queries, messages of each sender, collectives."`

	Fanin   int            `yaml:"fanin" range:"0,100000" doc:"incast, partition-aggregate: senders at once. As many as there are if left out."`
	Senders string         `yaml:"senders" enum:"fixed,random" default:"fixed" doc:"incast: the first of from, or drawn for each event together with the receiver."`
	Every   units.Duration `yaml:"every" doc:"Between events, rounds or messages. Events and rounds without it wait for the last to end."`
	Rate    float64        `yaml:"rate" range:"0,1000000000" doc:"Events (incast), flows (poisson) or queries per second, as a Poisson process. retrievals: workflows per second of each client."`
	Jitter  units.Duration `yaml:"jitter" doc:"incast, saturate: each flow starts up to so much later."`

	Response    units.Size     `yaml:"response" doc:"poisson, requests, partition-aggregate: bytes of the answer."`
	Responses   []units.Size   `yaml:"responses" doc:"retrievals: bytes of an answer, each as likely."`
	Phases      []Phase        `yaml:"phases" doc:"retrievals: in place of rate: rates that follow each other, again and again."`
	Period      units.Duration `yaml:"period" doc:"retrievals: length of all phases together, where the last one does not say how long it lasts."`
	Fanouts     []int          `yaml:"fanouts" range:"1,100000" doc:"retrievals: how many servers are asked at once, each number as likely. One if left out."`
	Steps       int            `yaml:"steps" range:"0,100000" doc:"retrievals: how many of a workflow follow each other (1 if left out)."`
	Handshake   bool           `yaml:"handshake" doc:"retrievals: true: a small message each way goes before the request, as when a TCP connection opens."`
	Outstanding int            `yaml:"outstanding" range:"0,100000" doc:"requests: open requests of each client. saturate: messages that a connection keeps posted (2 if left out)."`
	Think       units.Duration `yaml:"think" doc:"requests: time between an answer and the next request. collective: between the end of one and the beginning of the next."`
	Pairs       bool           `yaml:"pairs" doc:"requests: true: each client keeps its requests open with every server. Else with one drawn for each."`
	Persistent  bool           `yaml:"persistent" doc:"poisson, requests, periodic, trace: connections stay open, one for each sender and receiver. Else each message has one of its own."`

	Conns int            `yaml:"connections" range:"0,10000" doc:"saturate: connections of each sender (1 if left out)."`
	Join  units.Duration `yaml:"join" doc:"saturate: each further sender starts so much later."`
	Leave units.Duration `yaml:"leave" doc:"saturate: each further sender stops so much later."`

	Operation string `yaml:"operation" enum:"all-reduce,reduce-scatter,all-gather,all-to-all" default:"all-reduce" doc:"collective: what is done with the data of all hosts of from, size bytes: a part of it belongs to each. all-to-all goes in steps, in the k-th of which each host sends to the one k places on."`
	Algorithm string `yaml:"algorithm" enum:"ring,trees" default:"ring" doc:"collective: the way of the data. ring: from each host of from to the next. trees (all-reduce): up and down two binary trees, each with half of it."`
	Pieces    int    `yaml:"pieces" range:"0,100000" doc:"collective: messages that a host's part (with trees: half of the data) is sent as, each passed on when it is there. One if left out."`

	File string `yaml:"file" doc:"trace: CSV file of flows with the columns start_s, src, dst and bytes, such as flows.csv of a run. Hosts by name, or by their place from 0."`
	Run  string `yaml:"run" doc:"trace: which run's flows are sent of a flows.csv that has several: its place in results.json, from 0 (the column run), or its name if no other has it (the column name)."`

	Flows []FlowSpec `yaml:"flows" doc:"flows: one by one."`
}

// Bin is a range of sizes.
type Bin struct {
	Share float64    `yaml:"share" need:"yes" range:"0,1" doc:"Share of all flows."`
	Min   units.Size `yaml:"min" need:"yes" doc:"Least size."`
	Max   units.Size `yaml:"max" need:"yes" doc:"Largest size."`
}

// Phase is a span of time with its own rate.
type Phase struct {
	Rate float64        `yaml:"rate" need:"yes" range:"0,1000000000" doc:"Workflows per second of each client."`
	For  units.Duration `yaml:"for" doc:"How long it lasts. The last one: what the others leave of the period, if left out."`
}

// FlowSpec is one flow.
type FlowSpec struct {
	At   units.Duration `yaml:"at" doc:"When it starts, after the start of the entry."`
	From string         `yaml:"from" need:"yes" doc:"Sender."`
	To   string         `yaml:"to" need:"yes" doc:"Receiver."`
	Size units.Size     `yaml:"size" need:"yes" doc:"Bytes."`
}

// uses lists the keys that apply to a kind, besides those of all kinds.
var uses = map[string][]string{
	"poisson":             {"from", "to", "stop", "sizes", "bins", "size", "load", "load_on", "pick", "count", "rate", "response", "persistent"},
	"incast":              {"from", "to", "stop", "size", "total", "fanin", "senders", "every", "load", "rate", "count", "jitter"},
	"permutation":         {"from", "to", "stop", "size", "count", "every"},
	"all-to-all":          {"from", "to", "stop", "size", "count", "every"},
	"requests":            {"from", "to", "stop", "size", "sizes", "bins", "load", "load_on", "response", "outstanding", "think", "pairs", "persistent", "count"},
	"partition-aggregate": {"from", "to", "stop", "size", "response", "fanin", "rate", "count"},
	"retrievals":          {"from", "to", "stop", "size", "responses", "rate", "phases", "period", "fanouts", "steps", "handshake", "count"},
	"saturate":            {"from", "to", "stop", "size", "connections", "outstanding", "join", "leave", "jitter"},
	"periodic":            {"from", "to", "stop", "size", "every", "count", "persistent"},
	"collective":          {"from", "stop", "size", "operation", "algorithm", "pieces", "think", "count"},
	"trace":               {"stop", "file", "run", "persistent"},
	"flows":               {"flows"},
}

// everyKind lists the keys of an entry that apply to all kinds.
var everyKind = []string{"group", "kind", "start", "class", "cc", "params", "transport", "tcp"}

// Measure configures what is recorded besides the flows.
type Measure struct {
	Warmup      units.Duration `yaml:"warmup" doc:"Flows that start earlier, and samples from before, do not count."`
	FCT         string         `yaml:"fct" enum:"ack,arrival" default:"ack" doc:"When a flow is complete: its last acknowledgement is at the sender, or its last byte at the receiver."`
	Ideal       string         `yaml:"ideal" enum:"computed,simulated" default:"computed" doc:"Completion time alone in the network, by which slowdown divides. computed: from the path. simulated: each flow runs once more, alone, at line rate, after the run (about doubles its cost)."`
	Sample      units.Duration `yaml:"sample" default:"10us" doc:"Interval of samples of queues and of congestion control."`
	Queues      []string       `yaml:"queues" doc:"Egress queues to record over time: switch:neighbour such as s1:h17, or all for their distribution alone. all if left out."`
	Bin         units.Duration `yaml:"bin" default:"100us" doc:"Interval of goodput and of link utilisation."`
	Links       []string       `yaml:"links" doc:"Links whose utilisation is recorded over time, such as s1:h17, or hosts for that of all links from hosts to switches together. The queues that are named if left out."`
	Series      int            `yaml:"series" range:"0,10000" default:"16" doc:"Most flows whose goodput and congestion control are recorded over time, the first of each group that stays connected longest."`
	RTT         bool           `yaml:"rtt" doc:"true: the round-trip times that acknowledgements of data give are recorded (ack_rtt)."`
	Connections bool           `yaml:"connections" doc:"true: connections of TCP are recorded, replayed after the run, and it is said what went wrong in each (diagnosed_rto_total and others; gfabric diagnose)."`
	CC          bool           `yaml:"cc" doc:"true: internals of congestion control (such as U, W and R of HPCC) are recorded for these flows."`
	Buckets     []units.Size   `yaml:"buckets" doc:"Sizes that part the flows for tables of slowdown. Ten classes with as many flows each if left out."`
	Sizes       []SizeRange    `yaml:"sizes" doc:"Ranges of flow sizes with values of their own, such as small.slowdown_p95."`
	Low         units.Rate     `yaml:"low" doc:"link_low_seconds counts bins in which the first of links carried less."`
	Windows     []Window       `yaml:"windows" doc:"Spans of time with values of their own, such as later.queue_peak_bytes."`
	Traces      []string       `yaml:"traces" doc:"Hosts that collect the copies that switches send them (switch.watch). What became of the packets is counted (traces_total), and the copies are kept with the results, for gfabric traces."`
	Events      []Event        `yaml:"events" doc:"Instants from which drain and recovery are timed."`
}

// SizeRange is a range of flow sizes.
type SizeRange struct {
	Name string     `yaml:"name" need:"yes" doc:"Name in front of its values."`
	From units.Size `yaml:"from" doc:"Least size."`
	To   units.Size `yaml:"to" doc:"Sizes are below. No bound if left out."`
}

// Window is a span of time.
type Window struct {
	Name string         `yaml:"name" need:"yes" doc:"Name in front of its values."`
	From units.Duration `yaml:"from" doc:"Beginning."`
	To   units.Duration `yaml:"to" doc:"End. That of the run if left out."`
}

// Event is an instant from which times are measured.
type Event struct {
	Name    string         `yaml:"name" need:"yes" doc:"Name in front of its values."`
	At      units.Duration `yaml:"at" doc:"Instant."`
	Starts  string         `yaml:"starts" doc:"In place of at: when the first flow of this group starts."`
	Ends    string         `yaml:"ends" doc:"In place of at: when the last flow of this group is complete."`
	Below   units.Size     `yaml:"below" doc:"drain_seconds is the time until the first of queues, having been above, is at or below so much."`
	Goodput string         `yaml:"goodput" doc:"recovery_seconds is the time until this group has its goodput back."`
	Share   float64        `yaml:"share" range:"0,1" default:"0.9" doc:"Share of the goodput before, that counts as recovered."`
	Reaches units.Rate     `yaml:"reaches" doc:"reach_seconds is the time until the goodput of the group that goodput names first is so much."`
	Before  *Window        `yaml:"before" doc:"Span in which the goodput before is measured. From the end of the warm-up to the event if left out."`
}
