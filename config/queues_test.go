package config

import (
	"os"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/policy"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
)

func rated(doc string) string { return strings.Replace(doc, "eth1,", "eth1, rate: 1Gbps,", 1) }

// Each kind of order and admission that a document can name is the one that the
// queue gets, with the published values of what is left out.
func TestQueuePolicies(t *testing.T) {
	for doc, want := range map[string]scheduler.QueueConfig{
		"order: {kind: fifo}":                        {Order: scheduler.FIFO{}},
		"order: {kind: lifo}":                        {Order: orders.LIFO{}},
		"order: {kind: random}":                      {Order: orders.Random{}},
		"order: {kind: ranked}":                      {Order: orders.Ranked{}, Rank: scheduler.RankDSCP},
		"order: {kind: ranked}, rank: size":          {Order: orders.Ranked{}, Rank: scheduler.RankSize},
		"order: {kind: levels}, rank: dscp-rising":   {Order: orders.Levels{N: 8}, Rank: scheduler.RankDSCPRising},
		"order: {kind: buckets, width: 64}":          {Order: orders.Buckets{Width: 64}, Rank: scheduler.RankDSCP},
		"order: {kind: sp-pifo}":                     {Order: orders.SPPIFO{Queues: 8}, Rank: scheduler.RankDSCP},
		"order: {kind: packs, headroom: 0.1}":        {Order: orders.PACKS{Queues: 8, Depth: 10, Window: 20, Sample: 1, K: 100}, Rank: scheduler.RankDSCP},
		"order: {kind: srpt}, rank: class":           {Order: orders.SRPT{}, Rank: scheduler.RankClass},
		"order: {kind: fq}":                          {Order: orders.FQ{Quantum: 1514, Flows: 1024}},
		"order: {kind: fq, target: 1ms, flows: 16}":  {Order: orders.FQ{Quantum: 1514, Flows: 16, CoDel: orders.CoDel{Target: frame.Millisecond, Interval: 100 * frame.Millisecond}}},
		"order: {kind: calendar, rate: 5Mbps}":       {Order: orders.Calendar{Rate: 5_000_000, Flows: 1024}},
		"inversions: true, rank: size":               {Inversions: true, Rank: scheduler.RankSize},
		"order: {kind: voq}":                         {Order: orders.VOQ{}},
		"admission: {kind: codel}":                   {Admission: orders.CoDel{Target: 5 * frame.Millisecond, Interval: 100 * frame.Millisecond}},
		"admission: {kind: red, min: 5KB, max: 9KB}": {Admission: orders.RED{Min: 5000, Max: 9000, PMax: 0.1, Weight: 9}},
		"admission: {kind: aifo, frames: 20, sample: 15, headroom: 0.1}, rank: dscp-rising": {Admission: orders.AIFO{Size: 20, Window: 20, Sample: 15, K: 100}, Rank: scheduler.RankDSCPRising},
	} {
		c, err := Parse("", []byte(rated(profiled("queues: [{queue: 2, "+doc+"}]", ""))))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		if got := c.Resolved().Switches[0].VSwitch(nil).Ports[0].Scheduler.Queues[2]; got != want {
			t.Errorf("%s: %+v, want %+v", doc, got, want)
		}
	}
}

func TestQueuePolicyRefusals(t *testing.T) {
	queue := func(s string) string { return rated(profiled("queues: [{queue: 2, "+s+"}]", "")) }
	for name, tc := range map[string]struct{ doc, want string }{
		"no rate":      {profiled("queues: [{queue: 2, order: {kind: lifo}}]", ""), "switches[0].qos.q.queues[0]: port eth1 has no rate"},
		"unknown":      {queue("order: {kind: rankd}"), `did you mean "ranked"?`},
		"calendar":     {queue("order: {kind: calendar}"), "queues[0].order.rate: is missing"},
		"stray rate":   {queue("order: {kind: fq, rate: 1Gbps}"), "order.rate: is of calendar alone"},
		"stray target": {queue("order: {kind: lifo, target: 1ms}"), "order.target: is of fq alone"},
		"red":          {queue("admission: {kind: red, min: 9KB, max: 9KB}"), "admission.max: must be above min"},
		"aifo":         {queue("admission: {kind: aifo}"), "admission.frames: is missing"},
		"two codels":   {queue("order: {kind: fq, target: 1ms}, admission: {kind: codel}"), "queues[0].admission: cannot stand beside target"},
		"stray rank":   {queue("order: {kind: fq}, rank: dscp"), `queues[0].rank: "dscp" is for nothing`},
		"lossless":     {queue("admission: {kind: codel}") + "    pfc: {classes: [2]}\n", "queues[0].admission: cannot stand beside a lossless class"},
		"mapped":       {queue("admission: {kind: codel}") + "    pfc: {classes: [5]}\n    classes: {queue: [0, 1, 3, 3, 4, 2, 6, 7]}\n", "queues[0].admission: cannot stand beside a lossless class"},
		"crossbar":     {queue("admission: {kind: codel}") + "    crossbar: {}\n", "cannot stand beside crossbar"},
		"small port":   {rated(profiled("push_out: {port: 100B}", "")), "push_out.port: holds no full frame"},
		"small queue":  {rated(profiled("push_out: {queue: 100B}", "")), "push_out.queue: holds no full frame"},
		"no limit":     {rated(profiled("push_out: {}", "")), "push_out: has no limit"},
		"push-out":     {rated(profiled("push_out: {port: 1MB}", "")) + "    crossbar: {}\n", "push_out: cannot stand beside crossbar"},
	} {
		_, err := Parse("x.yaml", []byte(tc.doc))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// What a policy says of itself is refused with its place, and so is what cannot stand
// beside it.
func TestPoliciesAreChecked(t *testing.T) {
	doc := func(queue, more string) string {
		return "version: 1\nswitches:\n  - name: s1\n    ports: [{interface: eth1, rate: 1Gbps, qos: p}]\n    qos: {p: {queues: [{queue: 0, " + queue + "}]}}\n" + more
	}
	for text, want := range map[string]string{
		doc(`policy: {text: "q = Queue(64KB); q.admPrio = valu;"}`, ""): `text:1:30: there is no definition "valu"; did you mean value?`,
		doc(`policy: {}`, ""):                                                                       "has neither file nor text",
		doc(`policy: {file: gold.oq}`, ""):                                                          "names the file gold.oq, and the API reads none",
		doc(`policy: {text: q = Queue(64KB);}, order: {kind: lifo}`, ""):                            "cannot stand beside order",
		doc(`policy: {text: q = Queue(64KB);}`, "    pfc: {classes: [0]}\n"):                        ".policy: drops frames, and cannot stand beside a lossless class, of which no frame may be dropped; serve another queue by it; a policy drops nothing that",
		doc(`shadow: {text: classify value = p.tos; q = Queue(64KB);}`, ""):                         "a shadow keeps records",
		strings.Replace(doc(`policy: {text: q = Queue(64KB);}`, ""), "rate: 1Gbps", "mtu: 1500", 1): "has no rate",
	} {
		if _, err := Parse("switch.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %s", text, err, want)
		}
	}
	for _, text := range []string{doc(`policy: {text: q = Queue(64KB);}`, ""), doc(`policy: {text: q = Queue(64KB); q.congestion = none;}`, "    pfc: {classes: [0]}\n")} {
		if _, err := Parse("switch.yaml", []byte(text)); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// A policy of several ports is of as many of the switch, in their order, and of one
// worker where they share a buffer.
func TestPoliciesOfSeveralPorts(t *testing.T) {
	const text = "q[1..2] = Queue(8KB); b = Buffer(8KB, q[1..2]); p1 = Port(100%, q[1]); p2 = Port(100%, q[2]);"
	doc := func(workers, of string) string {
		return "version: 1\nworkers: [" + workers + "]\nswitches:\n  - name: s1\n    ports: [" +
			"{interface: e1, rate: 1Gbps, qos: p}, {interface: e2, rate: 1Gbps}, {interface: e3, rate: 1Gbps" + of + "}]\n" +
			"    qos: {p: {queues: [{queue: 2, policy: {text: \"" + text + "\"}}]}}\n"
	}
	for text, want := range map[string]string{
		doc("{poll: sleep}", ""): "qos.p.queues[0].policy: has 2 ports, and the switch has 1 with it (e1)",
		doc("{poll: sleep}, {poll: sleep}, {poll: sleep}", ", qos: p"):             "has a buffer over several ports, and e1, e3 are of 2 workers",
		strings.Replace(doc("{poll: sleep}", ", qos: p"), "policy:", "shadow:", 1): "has 2 ports: a shadow is of one queue",
	} {
		if _, err := Parse("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %s", text, err, want)
		}
	}
	c, err := Parse("x.yaml", []byte(doc("{poll: sleep}, {poll: sleep}", ", qos: p"))) // e1 and e3 are of the first
	if err != nil {
		t.Fatal(err)
	}
	ports := c.Resolved().Switches[0].VSwitch(nil).Ports
	for i, want := range []scheduler.Order{policy.Order{Text: text}, nil, policy.Order{Text: text, Port: 1}} {
		if got := ports[i].Scheduler.Queues[2].Order; got != want {
			t.Errorf("port %d: %v, want %v", i, got, want)
		}
	}
}

// A document may name a policy by a file beside it, and has its text then.
func TestPolicyFiles(t *testing.T) {
	dir := t.TempDir()
	const doc = "version: 1\nswitches:\n  - name: s1\n    ports: [{interface: eth1, rate: 1Gbps, qos: p}]\n    qos: {p: {queues: [{queue: 0, policy: {file: a.oq}}]}}\n"
	if err := os.WriteFile(dir+"/switch.yaml", []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir + "/switch.yaml"); err == nil || !strings.Contains(err.Error(), "a.oq: no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
	for text, want := range map[string]string{"q = Queue(1KB);\nq.admPri = fifo;": "a.oq:2:3: a Queue has no attribute", "q = Queue(1KB);": ""} {
		if err := os.WriteFile(dir+"/a.oq", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(dir + "/switch.yaml")
		switch {
		case want == "" && (err != nil || c.Switches[0].QoS["p"].Queues[0].Policy.Text != text):
			t.Errorf("%q: %+v, %v", text, c, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An order of another module is chosen by its name; one that is not there, and a
// name beside another kind, are refused.
func TestRegisteredOrder(t *testing.T) {
	scheduler.Register("test-newest", orders.LIFO{})
	for _, c := range []struct {
		order     Order
		key, want string
	}{
		{Order{Kind: "registered", Name: "test-newest"}, "", ""},
		{Order{Kind: "registered", Name: "newest"}, "name", `"newest" is not the name of an order; registered are test-newest`},
		{Order{Kind: "lifo", Name: "test-newest"}, "name", "is of registered alone"},
	} {
		if key, problem := c.order.Check(); key != c.key || problem != c.want {
			t.Errorf("%+v: %s %s, want %s %s", c.order, key, problem, c.key, c.want)
		}
	}
	o := Order{Kind: "registered", Name: "test-newest"}
	if got := o.Config(); got != (orders.LIFO{}) {
		t.Errorf("it is %v", got)
	}
}
