package scenario

import (
	"reflect"
	"slices"
	"strings"

	"gswitch/fabric"
	"gswitch/units"
)

// Fault is a fault of a link or a node.
type Fault struct {
	Kind  string         `yaml:"kind" need:"yes" enum:"loss,corrupt,duplicate,reorder,jitter,down,slow,storm,pause,slow-node,reboot,clock" doc:"loss, corrupt, duplicate: of frames, at random. reorder, jitter: some frames, or all, take longer. down: the link is. slow: it has a lower rate. storm: it carries pause frames without end. pause: a node stands still. slow-node: it takes frames slowly. reboot: it loses what it has, and its links are down meanwhile. clock: it runs fast or slow."`
	Link  string         `yaml:"link" doc:"Link such as s1:h3, in that direction, or all."`
	Node  string         `yaml:"node" doc:"Host or switch."`
	Both  bool           `yaml:"both" doc:"true: the other direction of the link too."`
	Start units.Duration `yaml:"start" doc:"When it begins."`
	Stop  units.Duration `yaml:"stop" doc:"When it is over. Never if left out."`

	From    string         `yaml:"from" doc:"loss: only of frames that this host sent."`
	To      string         `yaml:"to" doc:"loss: only of frames that are for this host."`
	Share   float64        `yaml:"share" range:"0,1" doc:"Share of the frames."`
	Burst   int            `yaml:"burst" range:"0,1000000" doc:"loss: mean number of frames lost in a row. 1 if left out."`
	Delay   units.Duration `yaml:"delay" doc:"reorder, jitter: up to so much later."`
	ToRate  units.Rate     `yaml:"rate" doc:"slow: the rate."`
	Classes []int          `yaml:"classes" range:"0,7" doc:"storm: classes that are paused. Class 0 if left out."`
	Every   units.Duration `yaml:"every" default:"10us" doc:"storm: time between two pause frames."`
	Gap     units.Duration `yaml:"gap" doc:"slow-node: least time between two frames that it takes."`
	Drift   int            `yaml:"drift" range:"-100000000,100000000" doc:"clock: parts per billion that it runs faster."`
	Step    units.Duration `yaml:"step" doc:"clock: how far it is put forward at the start."`
}

// faultUses lists the keys that a kind of fault needs, and those that it may have besides
// kind, start and stop.
var faultUses = map[string]struct{ needs, may []string }{
	"loss":      {[]string{"link", "share"}, []string{"both", "burst", "from", "to"}},
	"corrupt":   {[]string{"link", "share"}, []string{"both"}},
	"duplicate": {[]string{"link", "share"}, []string{"both"}},
	"reorder":   {[]string{"link", "share", "delay"}, []string{"both"}},
	"jitter":    {[]string{"link", "delay"}, []string{"both"}},
	"down":      {[]string{"link"}, nil},
	"slow":      {[]string{"link", "rate"}, []string{"both"}},
	"storm":     {[]string{"link"}, []string{"both", "classes", "every"}},
	"pause":     {[]string{"node"}, nil},
	"slow-node": {[]string{"node", "gap"}, nil},
	"reboot":    {[]string{"node", "stop"}, nil},
	"clock":     {[]string{"node"}, []string{"drift", "step"}},
}

func (v *validator) fault(key string, f *Fault) {
	use := faultUses[f.Kind]
	known := append(append([]string{"kind", "start", "stop"}, use.needs...), use.may...)
	t := reflect.TypeFor[Fault]()
	for i := range t.NumField() {
		k := t.Field(i).Tag.Get("yaml")
		if v.sec.Has(key+"."+k) && !slices.Contains(known, k) {
			v.sec.Fail(key+"."+k, "means nothing for kind %s, which takes %s", f.Kind, strings.Join(known[1:], ", "))
		}
	}
	for _, k := range use.needs {
		if !v.sec.Has(key + "." + k) {
			v.sec.Fail(key+"."+k, "is missing; kind %s needs it", f.Kind)
		}
	}
	if f.Link != "" && f.Link != "all" {
		if _, err := FindPort(v.t, f.Link); err != nil {
			v.sec.Fail(key+".link", "%v, or all", err)
		}
	}
	if f.Node != "" {
		if _, ok := v.t.Lookup(f.Node); !ok {
			v.sec.Fail(key+".node", "there is no node %q", f.Node)
		}
	}
	v.host(key+".from", f.From)
	v.host(key+".to", f.To)
	if f.Burst > 1 && (f.From != "" || f.To != "") {
		v.sec.Fail(key+".burst", "means nothing with from or to: what is lost of some flows alone is drawn for each frame")
	}
	if f.Stop > 0 && f.Stop <= f.Start {
		v.sec.Fail(key+".stop", "%v is not after start, %v", f.Stop, f.Start)
	}
	if f.Every <= 0 {
		v.sec.Fail(key+".every", "is not above zero")
	}
}

// host rejects a value that is set but is not the name of a host.
func (v *validator) host(key, name string) {
	if i, ok := v.t.Lookup(name); name != "" && (!ok || v.t.Nodes[i].Kind != fabric.Host) {
		v.sec.Fail(key, "there is no host %q", name)
	}
}
