package scenario

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gswitch/cc"
	"gswitch/config"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/section"
	"gswitch/units"
)

// validator checks that values are consistent with each other.
type validator struct {
	doc  *Document
	t    *fabric.Topology
	sec  *section.Section
	file string
}

func (v *validator) all() {
	d := v.doc
	if d.Duration <= 0 {
		v.sec.Fail("duration", "is not above zero; write how long the run takes, such as 10ms")
	}
	for i := range v.t.Links {
		if l := &v.t.Links[i]; l.Rate == 0 {
			v.sec.Fail("topology", "the link between %s and %s has no rate; give the class %s one under topology.classes", v.t.Nodes[l.A.Node].Name, v.t.Nodes[l.B.Node].Name, l.Class)
			break
		}
	}
	v.names("variants", len(d.Variants), func(i int) string { return d.Variants[i].Name })
	v.switches()
	v.hosts()
	if len(d.Workload) == 0 {
		v.sec.Fail("workload", "is empty; add an entry with a kind, such as poisson or incast")
	}
	v.names("workload", len(d.Workload), func(i int) string { return d.Workload[i].Name() })
	for i := range d.Workload {
		v.entry(fmt.Sprintf("workload[%d]", i), &d.Workload[i])
	}
	for i := range d.Faults {
		v.fault(fmt.Sprintf("faults[%d]", i), &d.Faults[i])
	}
	v.faultOverlaps()
	v.probes()
	v.clock()
	v.measure()
}

// names checks that the elements of a list have distinct names that expectations can
// refer to.
func (v *validator) names(list string, n int, name func(int) string) {
	seen := map[string]bool{}
	for i := range n {
		key, s := fmt.Sprintf("%s[%d]", list, i), name(i)
		if list != "workload" {
			key += ".name"
		}
		switch {
		case !identifier.MatchString(s):
			v.sec.Fail(key, "%q is not a name; use letters, digits and _, beginning with a letter", s)
		case seen[s]:
			v.sec.Fail(key, "the name %q is used twice", s)
		}
		seen[s] = true
	}
}

func (v *validator) switches() {
	v.detours()
	v.paths()
	v.features()
	v.wholes()
	v.ecn()
	v.occupancy()
	v.queues()
	v.exclusions()
	v.replay()
	v.noticesPass()
	v.fits()
}

func (v *validator) hosts() {
	h := &v.doc.Hosts
	v.hostFeatures()
	v.congestion("hosts", h.CC, h.Params)
	v.transport("hosts.transport", &h.Transport)
	v.rc3("hosts.transport", &h.Transport, h.Class)
	v.streams("hosts.tcp", &h.TCP, true)
	if n := len(h.Weights); n != 0 && n != 8 {
		v.sec.Fail("hosts.weights", "has %d numbers; write eight, one for each class", n)
	}
	if _, err := h.RTT(); err != nil {
		v.sec.Fail("hosts.base_rtt", "%v", err)
	}
	if _, err := h.TurnBytes(); err != nil {
		v.sec.Fail("hosts.turn", "%v", err)
	}
	if first, err := h.Policy.First(); err != nil {
		v.sec.Fail("hosts.policy", "%v", err)
	} else if first != nil && h.Turn != "frame" {
		v.sec.Fail("hosts.policy", "says who sends next, and so does turn; take one of the two out")
	}
	for i := range h.Overrides {
		o, key := &h.Overrides[i], fmt.Sprintf("hosts.overrides[%d]", i)
		if _, err := FindHosts(v.t, o.Hosts); err != nil {
			v.sec.Fail(key+".hosts", "%v", err)
		}
		v.override(key, o.CC, o.Params, o.Transport)
	}
}

// TurnBytes returns the payload bytes of a turn, 0 for one frame.
func (h *Hosts) TurnBytes() (uint32, error) {
	switch h.Turn {
	case "frame":
		return 0, nil
	case "message":
		return math.MaxUint32, nil
	}
	var s units.Size
	if err := s.UnmarshalText([]byte(h.Turn)); err != nil {
		return 0, fmt.Errorf("%w, or frame, or message", err)
	}
	if s < 1 || s > math.MaxUint32 {
		return 0, fmt.Errorf("%v is not from 1B to 4GB", s)
	}
	return uint32(s), nil
}

// RTT returns the base round-trip time that hosts assume, 0 for auto.
func (h *Hosts) RTT() (frame.Time, error) {
	var t config.BaseRTT
	switch err := t.UnmarshalText([]byte(h.BaseRTT)); {
	case err != nil:
		return 0, err
	case t == config.AutoRTT:
		return 0, nil
	case t == 0:
		return 0, fmt.Errorf("%q is not above zero", h.BaseRTT)
	}
	return frame.Time(t), nil
}

func (v *validator) override(key, name string, p Params, t *Transport) {
	if name != "" {
		v.congestion(key, name, p)
	} else if len(p) > 0 {
		v.sec.Fail(key+".params", "stands without cc; name the congestion control that it is for")
	}
	if t == nil {
		return
	}
	v.transport(key+".transport", t)
	v.rc3(key+".transport", t, v.doc.Hosts.Class)
	if t.Cap == "auto" || t.AutoRTO {
		v.sec.Fail(key+".transport", "cap auto and auto_rto stand only under hosts.transport, where they hold for all; write numbers here")
	}
}

func (v *validator) congestion(key, name string, p Params) {
	if _, err := Congestion(name, p); err != nil {
		if _, unknown := err.(cc.UnknownError); !unknown {
			key += ".params"
		} else {
			key += ".cc"
		}
		v.sec.Fail(key, "%v", err)
	}
}

// Congestion returns the constructor of a congestion control algorithm.
func Congestion(name string, p Params) (func(*cc.Env) cc.Algorithm, error) {
	return cc.Factory(name, p.texts())
}

// texts returns options as they are written.
func (p Params) texts() map[string]string {
	v := make(map[string]string, len(p))
	for k, s := range p {
		v[k] = string(s)
	}
	return v
}

func (v *validator) transport(key string, t *Transport) {
	if t.Given()["fast_retransmit"] == "false" {
		v.slowRetransmit(key, t)
	}
	if _, err := t.Recovery(); err != nil {
		v.sec.Fail(key+".params", "%v", err)
	}
	if _, err := t.Packets(); err != nil {
		v.sec.Fail(key+".cap", "%v", err)
	}
}

// Packets returns the limit of frames in flight: 0 for none, -1 for auto.
func (t *Transport) Packets() (int, error) {
	switch t.Cap {
	case "none":
		return 0, nil
	case "auto":
		return -1, nil
	}
	n, err := strconv.Atoi(t.Cap)
	if err != nil || n < 1 || n > 1<<20 {
		return 0, fmt.Errorf("%q is not a number of frames; write none, auto or a number from 1", t.Cap)
	}
	return n, nil
}

func (v *validator) entry(key string, e *Entry) {
	for k := range entryKeys {
		if v.sec.Has(key+"."+k) && !slices.Contains(everyKind, k) && !slices.Contains(uses[e.Kind], k) {
			v.sec.Fail(key+"."+k, "means nothing for kind %s, which takes %s", e.Kind, strings.Join(uses[e.Kind], ", "))
		}
	}
	v.override(key, e.CC, e.Params, e.Transport)
	if e.TCP != nil {
		v.streams(key+".tcp", e.TCP, false)
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"from", e.From}, {"to", e.To}} {
		if _, err := FindHosts(v.t, list.names); err != nil {
			v.sec.Fail(key+"."+list.key, "%v", err)
		}
	}
	for _, size := range []struct {
		key   string
		bytes units.Size
	}{{"size", e.Size}, {"total", e.Total}} {
		if v.sec.Has(key+"."+size.key) && size.bytes == 0 {
			v.sec.Fail(key+"."+size.key, "a flow of no bytes never ends; write 1B or more")
		}
	}
	if e.Stop > 0 && e.Stop <= e.Start {
		v.sec.Fail(key+".stop", "%v is not after start, %v", e.Stop, e.Start)
	}
	switch e.Kind {
	case "poisson":
		v.poisson(key, e)
	case "requests":
		v.requests(key, e)
	case "retrievals":
		v.retrievals(key, e)
	}
	if v.sec.Err() != nil {
		return
	}
	if _, err := e.Source(v.doc, v.t, filepath.Dir(v.file), 1); err != nil {
		v.sec.Fail(key, "%v", err)
	}
}

func (v *validator) poisson(key string, e *Entry) {
	given := 0
	for _, is := range []bool{e.Sizes != "", len(e.Bins) > 0, v.sec.Has(key + ".size")} {
		if is {
			given++
		}
	}
	if given != 1 {
		v.sec.Fail(key, "wants the sizes of its flows: one of sizes, bins and size")
	}
	if (e.Load > 0) == (e.Rate > 0) {
		v.sec.Fail(key, "wants either load or rate")
	}
	if e.Sizes != "" {
		if _, err := sizesOf(e.Sizes, filepath.Dir(v.file)); err != nil {
			v.sec.Fail(key+".sizes", "%v", err)
		}
	}
	if len(e.Bins) > 0 {
		if err := e.bins().Check(); err != nil {
			v.sec.Fail(key+".bins", "%v", err)
		}
	}
	v.loadOn(key, e)
}

func (v *validator) loadOn(key string, e *Entry) {
	if e.On == "hosts" {
		return
	}
	if _, err := FindPort(v.t, e.On); err != nil {
		v.sec.Fail(key+".load_on", "%v", err)
	}
}

// requests checks how load goes with the other keys: it says when requests fall due.
func (v *validator) requests(key string, e *Entry) {
	switch {
	case e.Load == 0 && v.sec.Has(key+".load_on"):
		v.sec.Fail(key+".load_on", "means nothing without load")
	case e.Load == 0 && v.sec.Has(key+".load"):
		v.sec.Fail(key+".load", "must be above zero; without it a request follows the answer to the one before at once")
	case e.Load > 0 && e.Think > 0:
		v.sec.Fail(key+".think", "means nothing with load, which says how long after each other requests fall due")
	}
	v.loadOn(key, e)
}

func (v *validator) measure() {
	m := &v.doc.Measure
	if m.Warmup >= v.doc.Duration {
		v.sec.Fail("measure.warmup", "%v is not shorter than the run, %v", m.Warmup, v.doc.Duration)
	}
	if m.Sample <= 0 || m.Bin <= 0 {
		v.sec.Fail("measure", "sample and bin must be above zero")
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"queues", m.Queues}, {"links", m.Links}} {
		for i, name := range list.names {
			if name == "all" && list.key == "queues" || name == "hosts" && list.key == "links" {
				continue
			}
			key := fmt.Sprintf("measure.%s[%d]", list.key, i)
			p, err := FindPort(v.t, name)
			if err != nil {
				v.sec.Fail(key, "%v", err)
			} else if list.key == "queues" && v.t.Nodes[p.Node].Kind != fabric.Switch {
				v.sec.Fail(key, "%s is not a switch", v.t.Nodes[p.Node].Name)
			}
		}
	}
	for i, name := range m.Traces {
		key := fmt.Sprintf("measure.traces[%d]", i)
		if v.host(key, name); len(v.doc.Wholes()) == 0 {
			v.sec.Fail(key, "no switch sends %s copies: switch.watch does, with enabled: true", name)
		}
	}
	v.names("measure.sizes", len(m.Sizes), func(i int) string { return m.Sizes[i].Name })
	for i := range m.Sizes {
		s, key := &m.Sizes[i], fmt.Sprintf("measure.sizes[%d]", i)
		if s.To > 0 && s.To <= s.From {
			v.sec.Fail(key+".to", "%v is not above from, %v", s.To, s.From)
		}
		if slices.Contains(v.doc.Groups(), s.Name) {
			v.sec.Fail(key+".name", "%q is a group of the workload already", s.Name)
		}
	}
	v.names("measure.windows", len(m.Windows), func(i int) string { return m.Windows[i].Name })
	v.names("measure.events", len(m.Events), func(i int) string { return m.Events[i].Name })
	for i := range m.Windows {
		if w := &m.Windows[i]; w.To > 0 && w.To <= w.From {
			v.sec.Fail(fmt.Sprintf("measure.windows[%d].to", i), "%v is not after from, %v", w.To, w.From)
		}
	}
	for i := range m.Events {
		e, key := &m.Events[i], fmt.Sprintf("measure.events[%d]", i)
		for _, g := range []struct{ key, name string }{{"starts", e.Starts}, {"ends", e.Ends}, {"goodput", e.Goodput}} {
			if g.name != "" && !slices.Contains(v.doc.Groups(), g.name) {
				v.sec.Fail(key+"."+g.key, "no entry of the workload has the group %q; there are %s", g.name, strings.Join(v.doc.Groups(), ", "))
			}
		}
		if e.Reaches > 0 && e.Goodput == "" {
			v.sec.Fail(key+".reaches", "needs a group: name one under goodput")
		}
		if e.Below > 0 && (len(m.Queues) == 0 || m.Queues[0] == "all") {
			v.sec.Fail(key+".below", "needs a queue: name one under measure.queues")
		}
	}
}

// Name returns the group of an entry.
func (e *Entry) Name() string {
	if e.Group != "" {
		return e.Group
	}
	return strings.ReplaceAll(e.Kind, "-", "_")
}

// Groups returns the groups of the workload.
func (d *Document) Groups() []string {
	var v []string
	for i := range d.Workload {
		v = append(v, d.Workload[i].Name())
	}
	return v
}
