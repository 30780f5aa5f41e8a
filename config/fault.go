package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gswitch/fault"
	"gswitch/frame"
	"gswitch/section"
	"gswitch/units"
)

// Faults is what goes wrong, on purpose, with the frames that a port sends.
type Faults struct {
	Loss         Share          `yaml:"loss" doc:"Frames that are lost."`
	Burst        int            `yaml:"burst" range:"0,1000000" doc:"Mean number of frames that loss takes in a row. Each alone if left out."`
	Corrupt      Share          `yaml:"corrupt" doc:"Frames that are damaged on the link, so that the far end drops them by their checksum."`
	Flip         Share          `yaml:"flip" doc:"Frames that arrive with a bit inverted that no Ethernet checksum finds."`
	Duplicate    Share          `yaml:"duplicate" doc:"Frames that arrive twice."`
	Reorder      Share          `yaml:"reorder" doc:"Frames that are held back for reorder_delay, while others overtake them."`
	ReorderDelay units.Duration `yaml:"reorder_delay" doc:"How long. Needed beside reorder."`
	Jitter       units.Duration `yaml:"jitter" doc:"Each frame takes up to so much longer, in order."`
	Slow         float64        `yaml:"slow" range:"1,1000000" doc:"Factor by which frames occupy the link longer than rate says."`
	Seed         uint64         `yaml:"seed" doc:"Seed of what is drawn: with the same seed, the same of the frames that leave are hit. Derived from the names of switch and port if left out."`
}

// Share is a probability. It is written 0.001 or 0.1%.
type Share float64

func (s *Share) UnmarshalText(text []byte) error {
	number, percent := strings.CutSuffix(string(text), "%")
	if percent {
		number = strings.TrimSpace(number) + "e-2"
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0 && v <= 1) || strings.ContainsAny(string(text), "xX_") || strings.Count(number, "e") > 1 {
		return fmt.Errorf("%q is not a share; write 0.1%% or 0.001, from 0 to 1", text)
	}
	*s = Share(v)
	return nil
}

func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// JSONSchema describes the values in a schema.
func (Share) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"string", "number"}, "pattern": `^[0-9]+(\.[0-9]+)? ?%?$`}
}

// String writes the share in per cent, to the last digit.
func (s Share) String() string {
	// Moving the point, not multiplying, keeps 0.07 from being 7.000000000000001%.
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(float64(s), 'f', -1, 64), ".")
	fraction += "00"
	whole = strings.TrimLeft(whole+fraction[:2], "0")
	fraction = strings.TrimRight(fraction[2:], "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole + "%"
}

// Fault returns what a resolved port asks for, and the seed; nil without
// faults.
func (p *Port) Fault() (*fault.Config, uint64) {
	f := p.Faults
	if f == nil {
		return nil, 0
	}
	c := &fault.Config{Corrupt: float64(f.Corrupt), Flip: float64(f.Flip), Duplicate: float64(f.Duplicate),
		Reorder: float64(f.Reorder), ReorderBy: frame.Time(f.ReorderDelay), Jitter: frame.Time(f.Jitter), Slow: f.Slow}
	if f.Burst > 1 && f.Loss > 0 && f.Loss < 1 {
		c.Burst = fault.Bursts(float64(f.Loss), float64(f.Burst))
	} else {
		c.Loss = float64(f.Loss)
	}
	return c, f.Seed
}

func (d decoder) validateFaults(p *Port, path string) {
	f := p.Faults
	if f == nil {
		return
	}
	at := func(key string) string { return path + ".faults." + key }
	switch {
	case f.Reorder > 0 && f.ReorderDelay == 0 && !d.Refused(at("reorder_delay")):
		d.Fail(at("reorder"), "needs reorder_delay, the time for which frames are held back, such as 50us")
	case f.Reorder == 0 && f.ReorderDelay > 0 && !d.Refused(at("reorder")):
		d.Fail(at("reorder_delay"), "needs reorder, the share of frames that are held back, such as 0.1%%")
	}
	if f.Burst > 0 && f.Loss == 0 && !d.Refused(at("loss")) {
		d.Fail(at("burst"), "needs loss, the share of frames that are lost, such as 1%%")
	}
	if n := Share(f.Burst); n > 1 && f.Loss > n/(n+1) && f.Loss < 1 {
		d.Fail(at("loss"), "%v in bursts of %d frames cannot be: between two bursts one frame arrives at least, so %v is the most", f.Loss, f.Burst, n/(n+1))
	}
	if f.Slow > 1 && p.Rate == 0 && !d.Refused(path+".rate") {
		d.Fail(at("slow"), "needs rate: a port without emulated speed has none that could be slower")
	}
	for _, t := range []struct {
		key string
		v   units.Duration
	}{{"reorder_delay", f.ReorderDelay}, {"jitter", f.Jitter}} {
		if t.v > units.Second {
			d.Fail(at(t.key), "%v is more than 1s, for which no port keeps its frames", t.v)
		}
	}
}

// SetFault sets a key of the port's faults from its text as in the document.
// The text none takes the key away, and the key none all of them.
func (p *Port) SetFault(key, text string) error {
	if key == "none" {
		p.Faults = nil
		return nil
	}
	names := section.Keys(new(Faults))
	if !slices.Contains(names, key) {
		if near := units.Nearest(key, names); near != "" {
			return fmt.Errorf("there is no fault %q; did you mean %q?", key, near)
		}
		return fmt.Errorf("there is no fault %q; there are %s, and none", key, strings.Join(names, ", "))
	}
	return p.setFault(key, text)
}

func (p *Port) setFault(key, text string) error {
	var f Faults
	if p.Faults != nil {
		f = *p.Faults
	}
	if err := section.SetKey(&f, key, text, text == "none"); err != nil {
		return err
	}
	p.Faults = &f
	if f == (Faults{}) {
		p.Faults = nil
	}
	return nil
}

// String writes what is set as the document would; nothing if that is nothing.
func (f *Faults) String() string {
	if f == nil {
		return ""
	}
	return section.Brief(f)
}
