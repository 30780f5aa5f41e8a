package systems_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gswitch/config"
	"gswitch/fabric/scenario"
	"gswitch/frame"
	_ "gswitch/systems"
	"gswitch/vswitch"
)

// text is what documents have under the keys of exclusions: one that is not "" of each
// place.
type text struct {
	top, port, sw, profile, queue string // of a daemon's document, port e1 and its queue 2
	pfc, classes                  string
	scenario                      string // switch of a scenario, which has nothing else
}

const (
	dropsNothing = `policy: {text: "q = Queue(64KB); q.congestion = none;"}`
	threeHops    = "routes: [{prefix: 20.0.0.0/8, next_hops: [{via: 10.0.0.2}, {via: 10.0.1.2}]}]"
)

var texts = map[string]text{
	"order":                {queue: "order: {kind: lifo}", scenario: "order: {kind: lifo}"},
	"target":               {queue: "order: {kind: fq, target: 1ms}", scenario: "order: {kind: fq, target: 1ms}"},
	vswitch.Dropping:       {queue: "order: {kind: packs}", scenario: "order: {kind: packs}"},
	"policy":               {queue: dropsNothing, scenario: dropsNothing},
	"policy that drops":    {queue: `policy: {text: "q = Queue(64KB);"}`},
	"shadow":               {queue: `shadow: {text: "q = Queue(64KB);"}`, scenario: `shadow: {text: "q = Queue(64KB);"}`},
	"admission":            {queue: "admission: {kind: codel}", scenario: "admission: {kind: codel}"},
	"push_out":             {profile: "push_out: {port: 1MB}", scenario: "push_out: {port: 1MB}"},
	"ecn":                  {queue: "ecn: {kmin: 10KB, kmax: 20KB}", scenario: "ecn: {kmin: 10KB, kmax: 20KB}"},
	"pi":                   {queue: "pi: {ref: 10KB, a: 2e-7, b: 1e-7, period: 10us}", scenario: "ecn: {pi: {ref: 10KB, a: 2e-7, b: 1e-7, period: 10us}}"},
	"rocc":                 {profile: "rocc: {queues: [2]}", scenario: "rocc: {enabled: true, classes: [2]}"},
	"qcn":                  {profile: "qcn: {queues: [2]}", scenario: "qcn: {enabled: true, classes: [2]}"},
	"hull":                 {profile: "hull: {queues: [2]}", scenario: "hull: {enabled: true, classes: [2]}"},
	"lossradar":            {profile: "lossradar: {queues: [2]}"},
	"lstf":                 {profile: "lstf: {queues: [2]}"},
	"crossbar":             {sw: "crossbar: {ingress: 2MiB}", scenario: "crossbar: {enabled: true}"},
	"escape":               {sw: "escape: {ports: [e2]}", scenario: "escape: {enabled: true}"},
	"gfc":                  {sw: "gfc: {}", scenario: "gfc: {enabled: true}"},
	"flowradar":            {sw: "flowradar: {}"},
	"lldp":                 {sw: "lldp: {}"},
	"loops":                {sw: "loops: {}"},
	"clock":                {sw: "clock: {root: true}"},
	"watch":                {sw: "watch: {sessions: [{name: w, port: e2, one_in: 9}]}"},
	"err_disable":          {pfc: "err_disable: 1s"},
	"watchdog":             {pfc: "watchdog: {action: drop}"},
	"pause":                {pfc: "pause: true"},
	"classes":              {classes: "3"},
	vswitch.Lossless:       {classes: "2"},
	vswitch.SeveralWorkers: {top: "workers: [{poll: sleep}, {poll: sleep}]"},
	"vlan":                 {port: "vlan: {access: 1}"},
	"isolated":             {port: "isolated: true"},
	"address":              {port: "address: [10.0.7.1/24]"},
	"voq":                  {scenario: "voq: true"},
	"choose":               {sw: "paths: {choose: scatter}\n    " + threeHops, scenario: "paths: {choose: scatter}"},
}

// sameKey reports whether two texts cannot be in one document, as they are of one key.
func sameKey(a, b text) bool {
	clash := func(x, y string) bool {
		kx, _, _ := strings.Cut(x, ":")
		ky, _, _ := strings.Cut(y, ":")
		return x != "" && kx == ky
	}
	return clash(a.sw, b.sw) || clash(a.profile, b.profile) || clash(a.queue, b.queue) || clash(a.pfc, b.pfc) || clash(a.port, b.port)
}

// daemon is the document of a daemon whose switch has some things and, where those do not
// say otherwise, lossless class 3.
func daemon(keys ...string) string {
	var top, port, profile, queue, flow, classes, sw []string
	put := func(v *[]string, s string) {
		if s != "" {
			*v = append(*v, s)
		}
	}
	for _, k := range keys {
		t := texts[k]
		put(&top, t.top)
		put(&port, t.port)
		put(&profile, t.profile)
		put(&queue, t.queue)
		put(&flow, t.pfc)
		put(&classes, t.classes)
		put(&sw, t.sw)
	}
	if classes == nil && !slices.Contains(flow, "pause: true") {
		classes = []string{"3"}
	}
	if classes != nil {
		put(&flow, "classes: ["+strings.Join(classes, ", ")+"]")
	}
	if !strings.Contains(strings.Join(flow, ""), "watchdog") {
		put(&flow, "watchdog: {action: off}")
	}
	if queue != nil {
		put(&profile, "queues: [{queue: 2, "+strings.Join(queue, ", ")+"}]")
	}
	put(&port, "interface: e1")
	put(&port, "rate: 10Gbps")
	if profile != nil {
		put(&port, "qos: q")
		put(&sw, "qos: {q: {"+strings.Join(profile, ", ")+"}}")
	}
	put(&top, "version: 1\nswitches:\n  - name: s\n    ports: [{"+strings.Join(port, ", ")+"}, {interface: e2, rate: 10Gbps, address: [10.0.0.1/24]}, {interface: e3, rate: 10Gbps, address: [10.0.1.1/24]}]")
	put(&sw, "pfc: {"+strings.Join(flow, ", ")+"}\n    buffer: {lossless: {xoff: 64KiB}}")
	return strings.Join(top, "\n") + "\n    " + strings.Join(sw, "\n    ") + "\n"
}

// simulated is a scenario whose switches have some things.
func simulated(keys ...string) string {
	var v []string
	for _, k := range keys {
		v = append(v, texts[k].scenario)
	}
	return "version: 1\ntopology:\n  generate: star(4)\n  classes: {host: {rate: 100Gbps, delay: 1us}}\nduration: 1ms\n" +
		"workload:\n  - {group: burst, kind: incast, from: [h1..h3], to: [h4], size: 500KB}\n" +
		"pfc: {enabled: true}\nswitch: {buffer: {xoff: 64KiB}, " + strings.Join(v, ", ") + "}\n"
}

// taken reports what a daemon says of its document: nothing, if it takes it, and its
// switch does so too.
func taken(keys ...string) error {
	c, err := config.Parse("x.yaml", []byte(daemon(keys...)))
	if err != nil {
		return err
	}
	cfg := c.Resolved().Switches[0].VSwitch(nil)
	pools := make([]*frame.Pool, len(c.Resolved().Switches[0].WorkersUsed()))
	arena := frame.MustArena(8192, 2048, frame.DefaultHeadroom)
	depot := frame.NewDepot(arena)
	for i := range pools {
		pools[i] = depot.NewPool(arena)
	}
	if _, err := vswitch.New(cfg, pools); err != nil {
		return fmt.Errorf("the document is taken, and the switch says: %w", err)
	}
	return nil
}

func inScenario(keys ...string) error {
	_, err := scenario.Parse("x.yaml", []byte(simulated(keys...)), scenario.Options{})
	return err
}

// aliases are other texts for a key of an exclusion.
var aliases = map[string][]string{
	"order":          {"target", vswitch.Dropping},
	vswitch.Dropping: {"policy that drops"},
	"policy":         {"policy that drops"},
	vswitch.Lossless: {"pause"},
	"classes":        {vswitch.Lossless},
}

// byValue are pairs that are refused for what one of them says, and not as such: with pause
// every class is lossless, and what is copied wants one that is not.
var byValue = [][2]string{{"pause", "watch"}}

// places are the keys under which pairs are refused whose first one is no key of a
// document, or stands elsewhere.
var places = map[string]string{vswitch.Dropping: "order", "choose": "paths.choose", "pi": "ecn.pi"}

// Each pair of the table is refused in a document, by a daemon or in a scenario, with
// file, line, key and reason, and each of the two alone is taken.
func TestEachExclusionIsRefused(t *testing.T) {
	for key := range texts {
		if d := texts[key]; d.top+d.port+d.sw+d.profile+d.queue+d.pfc+d.classes != "" {
			if err := taken(key); err != nil {
				t.Errorf("a daemon with %s alone: %v\n%s", key, err, daemon(key))
			}
		}
		if texts[key].scenario != "" {
			if err := inScenario(key); err != nil {
				t.Errorf("a scenario with %s alone: %v", key, err)
			}
		}
	}
	for _, x := range vswitch.Exclusions() {
		a, okA := texts[x.A]
		b, okB := texts[x.B]
		if !okA || !okB {
			t.Errorf("%s beside %s: the test has no document with them", x.A, x.B)
			continue
		}
		var err error
		switch {
		case a.scenario != "" && b.scenario != "" && (b == texts["voq"] || x.A == "choose"):
			err = inScenario(x.A, x.B)
		default:
			err = taken(x.A, x.B)
		}
		if a.scenario != "" && b.scenario != "" && !sameKey(text{sw: a.scenario}, text{sw: b.scenario}) {
			if err := inScenario(x.A, x.B); err == nil || !strings.Contains(err.Error(), x.Beside()) {
				t.Errorf("%s beside %s in a scenario: %v\nwant %s", x.A, x.B, err, x.Beside())
			}
		}
		if err == nil || !strings.HasPrefix(err.Error(), "x.yaml:") || !strings.Contains(err.Error(), x.Beside()) {
			t.Errorf("%s beside %s: %v\nwant %s", x.A, x.B, err, x.Beside())
			continue
		}
		key := x.A
		if p, ok := places[key]; ok {
			key = p[strings.LastIndex(p, ".")+1:]
		}
		if !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
			return strings.Contains(line, "."+key) && strings.Contains(line, x.Beside())
		}) {
			t.Errorf("%s beside %s is refused without its key: %v", x.A, x.B, err)
		}
	}
}

// Features that exclude each other in a queue are taken in different ones.
func TestScenarioHasFeaturesOfDifferentClasses(t *testing.T) {
	both := strings.Replace(simulated("hull", "rocc"), "hull: {enabled: true, classes: [2]}", "hull: {enabled: true, classes: [1]}", 1)
	if _, err := scenario.Parse("x.yaml", []byte(both), scenario.Options{}); err != nil {
		t.Error(err)
	}
}

// What documents refuse of two things that each may have alone is a pair of the table.
func TestEachRefusalIsAnExclusion(t *testing.T) {
	excluded := func(a, b string) bool {
		is := func(of, key string) bool { return key == of || slices.Contains(aliases[key], of) }
		return slices.ContainsFunc(vswitch.Exclusions(), func(x vswitch.Exclusion) bool {
			return is(a, x.A) && is(b, x.B) || is(b, x.A) && is(a, x.B)
		})
	}
	refused := 0
	for a, x := range texts {
		for b, y := range texts {
			if a >= b || sameKey(x, y) {
				continue
			}
			var errs []error
			if x.scenario == "" || y.scenario == "" || a != "voq" && b != "voq" {
				errs = append(errs, taken(a, b))
			}
			if x.scenario != "" && y.scenario != "" {
				errs = append(errs, inScenario(a, b))
			}
			for _, err := range errs {
				if err == nil {
					continue
				}
				if refused++; !excluded(a, b) && !slices.Contains(byValue, [2]string{a, b}) {
					t.Errorf("%s beside %s is refused, and is no exclusion: %v", a, b, err)
				} else if !strings.HasPrefix(err.Error(), "x.yaml:") {
					t.Errorf("%s beside %s: %v", a, b, err)
				}
			}
		}
	}
	if refused < 30 {
		t.Errorf("%d documents of two things are refused", refused)
	}
}
