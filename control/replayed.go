package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"connectrpc.com/connect"

	"gswitch/config"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/vswitch"
)

// Replayed is the switch of a record. A replay.Player steps it.
type Replayed struct {
	*vswitch.Node
	Switch *vswitch.Switch

	name string
	made made
	doc  *config.Config // in force, as written
	conf *config.Switch // of this switch, with its defaults

	fixed bool // the configuration of Fix is in force; others are ignored

	refused      int   // calls of features that were refused
	firstRefused error // why the first of them was
	// From the header: not in any document, but part of each configuration.
	epoch  int64
	secret uint64
}

// Rebuild rebuilds the switch of a record. It is a replay.Build.
func Rebuild(h *replay.Header, pool *frame.Pool) (replay.Machine, error) {
	if h.Kind != "switch" {
		return nil, fmt.Errorf("the record is of a %s; a switch can be replayed", h.Kind)
	}
	r := &Replayed{name: h.Name, made: made{Document: h.Document, Ports: h.Ports}}
	var err error
	if r.doc, r.conf, err = r.made.config(r.name); err != nil {
		return nil, err
	}
	r.epoch, r.secret = h.Epoch, h.Secret
	c := r.config(r.conf, r.made.numbers())
	if r.Switch, err = vswitch.New(c, []*frame.Pool{pool}); err != nil {
		return nil, err
	}
	r.Node = r.Switch.Nodes[0]
	return r, nil
}

// config translates a document and adds what the recorded switch had besides.
func (r *Replayed) config(s *config.Switch, numbers map[string]int) *vswitch.Config {
	c := s.VSwitch(numbers)
	c.Epoch, c.Secret = r.epoch, r.secret
	return c
}

// RestoreImage implements replay.Resumer.
func (r *Replayed) RestoreImage(b []byte) error { return r.Switch.RestoreImage(b) }

// Do implements replay.Machine. A call that a feature refused is refused again, and with
// another configuration others may be: they are counted.
func (r *Replayed) Do(now frame.Time, command []byte) error {
	c, err := vswitch.DecodeChange(command)
	if err != nil {
		return err
	}
	a, ok := c.(vswitch.Apply)
	if !ok {
		if err := r.Switch.DoAt(now, c); err != nil {
			return err
		}
		if call, is := c.(*vswitch.CallFeature); is {
			r.count(call.Refusal())
		}
		return nil
	}
	if r.fixed {
		return nil
	}
	var m made
	if err := json.Unmarshal(a.Document, &m); err != nil {
		return fmt.Errorf("the document of a configuration: %w", err)
	}
	doc, conf, err := m.config(r.name)
	if err != nil {
		return err
	}
	a.Config = r.config(conf, m.numbers())
	if err := r.Switch.Do(a); err != nil {
		return err
	}
	r.made, r.doc, r.conf = m, doc, conf
	return nil
}

// count counts a call that was refused, if it was.
func (r *Replayed) count(why error) {
	if why == nil {
		return
	}
	if r.refused++; r.refused == 1 {
		r.firstRefused = why
	}
}

// Refusals returns how many calls of features were refused so far, and why the first was.
func (r *Replayed) Refusals() (int, error) { return r.refused, r.firstRefused }

// Fix sets the switch's configuration from another document for the whole replay: no
// other one replaces it. Ports are matched with those of the record by name.
func (r *Replayed) Fix(doc *config.Config) error {
	conf := switchOf(doc.Resolved(), r.name)
	if conf == nil {
		return fmt.Errorf("the document has no switch %s", r.name)
	}
	numbers := r.made.numbers()
	for i := range conf.Ports {
		if _, known := numbers[conf.Ports[i].Name]; !known {
			return fmt.Errorf("switch %s: the record has no port %s", r.name, conf.Ports[i].Name)
		}
	}
	c := r.config(conf, numbers)
	if err := r.Switch.Do(vswitch.Apply{Config: c}); err != nil {
		return err
	}
	r.doc, r.conf, r.fixed = doc, conf, true
	return nil
}

// Rated returns the ports with a rate of their own.
func (r *Replayed) Rated() (ports []uint16) {
	numbers := r.made.numbers()
	for i := range r.conf.Ports {
		if p := &r.conf.Ports[i]; p.Spec().Rated {
			ports = append(ports, uint16(numbers[p.Name]))
		}
	}
	return ports
}

// Rates returns the rates, in bit/s, of the ports that have their own, by name.
func (r *Replayed) Rates() map[string]float64 {
	rates := map[string]float64{}
	for i := range r.conf.Ports {
		rates[r.conf.Ports[i].Name] = float64(r.conf.Ports[i].Rate)
	}
	return rates
}

// CommandName returns the name of a command of a record, as the program uses it.
func CommandName(b []byte) string {
	c, err := vswitch.DecodeChange(b)
	switch c := c.(type) {
	case vswitch.SetRoute:
		return fmt.Sprintf("add route %v", c.Prefix)
	case vswitch.DeleteRoute:
		return fmt.Sprintf("del route %v", c.Prefix)
	case *vswitch.LearnRoutes:
		return "routes of the kernel"
	case *vswitch.FlushFDB:
		return "clear fdb"
	case vswitch.TakeReports:
		return "take reports"
	case *vswitch.CallFeature:
		return fmt.Sprintf("call of %s: %s", c.Feature, strings.TrimPrefix(fmt.Sprintf("%T", c.Call), "*"))
	case vswitch.Apply:
		return "apply"
	}
	return fmt.Sprintf("unknown (%v)", err)
}

// Ports returns the names of the ports by their numbers.
func (r *Replayed) Ports() map[uint16]string {
	names := map[uint16]string{}
	for _, p := range r.made.Ports {
		names[uint16(p.Number)] = p.Name
	}
	return names
}

// Handler serves the API of a daemon with the switch of a record, as it was at an instant
// of the record: every list shows the state at that time. The player must not continue
// meanwhile.
func (r *Replayed) Handler(h *replay.Header, at frame.Time) (http.Handler, error) {
	engine, err := dataplane.New(dataplane.Config{Chunks: 1, ChunkSize: 2048, Held: true, At: at})
	if err != nil {
		return nil, err
	}
	u := &unit{name: r.name, sw: r.Switch, workers: []int{0}, numbers: r.made.numbers(), ports: map[string]*openPort{}}
	for i := range r.conf.Ports {
		p := &r.conf.Ports[i]
		u.ports[p.Name] = &openPort{conf: *p}
	}
	d := &Daemon{opts: Options{Version: h.Build}, start: time.Now().Add(-time.Duration(at - h.Start)), engine: engine, replayed: true, recordedMonotonic: h.Monotonic, log: slog.New(slog.DiscardHandler),
		doc: r.doc, resolved: r.doc.Resolved(), source: "a record", units: []*unit{u}}
	d.state.Version, d.state.Generation, d.state.ReloadSuccess = h.Build, 1, true
	return ReadOnly(d.Handler()), nil
}

// ReadOnly rejects calls of the API that would change something.
func ReadOnly(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if method := path.Base(r.URL.Path); r.Method == http.MethodPost && !strings.HasPrefix(method, "List") && !strings.HasPrefix(method, "Get") {
			_ = connect.NewErrorWriter().Write(w, r, connect.NewError(connect.CodePermissionDenied, errors.New("this is of a record, which cannot be changed")))
			return
		}
		api.ServeHTTP(w, r)
	})
}

// Shown serves the API of a daemon with a switch of a replayed run, which the caller
// steps, as it is at an instant. ports are the names of its ports by number.
func Shown(sw *vswitch.Switch, name string, ports []string, h *replay.Header, at frame.Time) (http.Handler, error) {
	doc := &config.Config{Version: 1, Workers: make([]config.Worker, 1), Switches: []config.Switch{{Name: name}}}
	r := &Replayed{Node: sw.Nodes[0], Switch: sw, name: name}
	for i, port := range ports {
		doc.Switches[0].Ports = append(doc.Switches[0].Ports, config.Port{Name: port, Interface: port})
		r.made.Ports = append(r.made.Ports, replay.Port{Name: port, Number: i})
	}
	r.doc = doc
	r.conf = switchOf(doc.Resolved(), name)
	return r.Handler(h, at)
}
