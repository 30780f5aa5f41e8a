package point

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/units"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Section is watch in documents.
type Section struct {
	Sessions  []Session   `yaml:"sessions" id:"name" doc:"Where copies go, and of what. A packet that several rules of a session match is copied once for it."`
	Reshuffle []Reshuffle `yaml:"reshuffle" id:"vip" doc:"Virtual addresses of which this switch divides the copies among analyzers, those that come to it and those that it makes."`
	Probes    *Probes     `yaml:"probes" doc:"Who may send probes into the network at this switch. Nobody if left out."`
}

// Session is a session in documents.
type Session struct {
	Name   string     `yaml:"name" need:"yes" doc:"Name, unique in the switch."`
	ID     int        `yaml:"id" range:"1,1023" doc:"Number in ERSPAN headers, and in the sub-agent of sFlow. Its place in the list, from 1, if left out."`
	To     netip.Addr `yaml:"to" doc:"IPv4 address that the copies are sent to, by the routes. One of to and port."`
	Port   string     `yaml:"port" doc:"Port of this switch that the copies leave by as they are, without headers around them (SPAN)."`
	From   netip.Addr `yaml:"from" doc:"Source address of the copies, by which receivers know the switch. The first loopback of IPv4, or else the first address of a port, if left out."`
	Format string     `yaml:"format" enum:"erspan3,erspan2,gre,sflow" default:"erspan3" doc:"What copies are wrapped into. erspan3: with time stamp, switch, port, sequence number and the reason of a drop. erspan2: with port and sequence number. gre: nothing else (ERSPAN type I). sflow: samples (one_in) and counters in datagrams of sFlow version 5 to UDP port 6343."`
	Snap   int        `yaml:"snap" range:"0,9216" doc:"Bytes of each packet that are kept, from 128 on. All that one chunk of memory has room for if left out; of sflow 128."`
	Class  int        `yaml:"class" range:"0,7" doc:"Traffic class of the copies. It must not be lossless: who watches would stop who is watched."`
	DSCP   int        `yaml:"dscp" range:"0,63" doc:"DSCP of the copies."`
	Rate   units.Rate `yaml:"rate" doc:"Most that the copies may take, of each worker. No limit if left out."`
	Burst  units.Size `yaml:"burst" range:"2000,67108864" default:"256KiB" doc:"What may exceed the rate at once."`

	Everflow *Everflow      `yaml:"everflow" doc:"Everflow's rules: SYN, FIN and RST of every TCP connection, BGP, NAK and congestion notifications of RoCEv2, pauses, what hosts mark, a sample; on plain packets and within tunnels."`
	Match    []mirror.Match `yaml:"match" id:"name" doc:"Rules of one's own."`
	OneIn    int            `yaml:"one_in" range:"1,16777216" doc:"At random one of so many frames, whatever it is; 1: all."`
	Counters units.Duration `yaml:"counters" doc:"Of sflow: how often the counters of all interfaces are sent, 1s at least, such as 20s. Not at all if left out."`
	Drops    []string       `yaml:"drops" doc:"Frames that the switch drops, for these reasons; all: for whichever they are lost. The copy has the reason. What was dropped late is as it would have left."`
	Pauses   bool           `yaml:"own_pauses" doc:"true: the pauses that the switch itself sends."`
}

// Everflow are the parameters of its rules.
type Everflow struct {
	Sample *int           `yaml:"sample" range:"0,16" default:"10" doc:"One in 2^sample packets, by the identification, so that every switch takes the same; 0: none but those of the other rules."`
	From   []netip.Prefix `yaml:"debug_from" doc:"IPv4 networks whose packets are copied for their debug bit: of hosts that may ask for traces, probers among them. The bit of others is counted alone. Of everybody if left out."`
}

var formats = map[string]mirror.Format{"erspan3": mirror.ERSPAN3, "erspan2": mirror.ERSPAN2, "gre": mirror.GRE, "sflow": mirror.SFlow}

// reasons are the reasons of drops by name.
var reasons = func() map[string]frame.Reason {
	m := map[string]frame.Reason{}
	for r := frame.Keep + 1; r < frame.NumReasons; r++ {
		m[r.String()] = r
	}
	return m
}()

// Options returns the Config of a switch.
func (s *Section) Options(cfg *vswitch.Config) (any, error) {
	c := Config{Rules: copies()}
	if len(s.Sessions)+len(s.Reshuffle) == 0 && s.Probes == nil {
		return nil, &vswitch.KeyError{Key: "sessions", Err: errors.New("nothing is to be copied, no copies divided, no probes taken; say sessions, reshuffle or probes")}
	}
	if len(s.Sessions) > maxSessions {
		return nil, &vswitch.KeyError{Key: "sessions", Err: fmt.Errorf("%d sessions: at most %d are possible", len(s.Sessions), maxSessions)}
	}
	for i := range s.Sessions {
		if err := s.Sessions[i].add(&c, i, cfg); err != nil {
			err.Key = fmt.Sprintf("sessions[%d]%s", i, err.Key)
			return nil, err
		}
	}
	if _, err := mirror.NewClassifier(c.Rules); err != nil {
		return nil, &vswitch.KeyError{Key: "sessions", Err: err}
	}
	if err := c.addReshuffle(s.Reshuffle); err != nil {
		return nil, err
	}
	if err := c.addProbes(s.Probes, cfg); err != nil {
		return nil, err
	}
	return c, nil
}

// copies are the rules by which copies are not copied: they would multiply on their
// way.
func copies() []mirror.Rule {
	never := func(name string, proto uint16) mirror.Rule {
		return mirror.Rule{Name: name, View: mirror.Both, Never: true, Proto: wire.ProtoGRE, GREProto: proto}
	}
	return []mirror.Rule{never("copies", mirror.GREProtoERSPAN2), never("copies-3", mirror.GREProtoERSPAN3)}
}

// add adds a session to a configuration.
func (s *Session) add(c *Config, i int, cfg *vswitch.Config) *vswitch.KeyError {
	fail := func(key, format string, a ...any) *vswitch.KeyError {
		return &vswitch.KeyError{Key: key, Err: fmt.Errorf(format, a...)}
	}
	o := SessionConfig{Name: s.Name, Port: frame.NoPort, Class: uint8(s.Class), Rate: int64(s.Rate), Burst: int64(s.Burst), OneIn: uint32(s.OneIn), Pauses: s.Pauses,
		Wrap: mirror.Session{ID: uint16(cmp.Or(s.ID, i+1)), Dst: s.To, Format: formats[s.Format], Snap: s.Snap, DSCP: uint8(s.DSCP), Switch: cfg.ID & 1023}}
	switch {
	case s.To.IsValid() == (s.Port != ""):
		return fail("", "say where the copies go: one of to and port")
	case s.Port != "":
		at := slices.IndexFunc(cfg.Ports, func(p vswitch.PortConfig) bool { return p.Name == s.Port })
		if at < 0 {
			return fail(".port", "there is no port %q", s.Port)
		}
		if s.Pauses {
			return fail(".own_pauses", "copies that leave by a port without headers would pause the receiver: send them to a collector by to in place of port")
		}
		o.Port = uint16(at)
	default:
		if o.Wrap.Src = s.From; !s.From.IsValid() {
			o.Wrap.Src = ownAddress(cfg)
		}
		if !o.Wrap.Src.IsValid() {
			return fail(".from", "the switch has no IPv4 address that copies could come from; give it a loopback, or say from")
		}
		if err := o.Wrap.Validate(); err != nil {
			return fail("", "%w", err)
		}
	}
	sflow := o.Wrap.Format == mirror.SFlow
	if sflow && s.Snap == 0 {
		o.Wrap.Snap = mirror.LeastSnap
	}
	switch {
	case s.Counters == 0:
	case !sflow:
		return fail(".counters", "copies say nothing of interfaces; say format: sflow")
	case frame.Time(s.Counters) < frame.Second:
		return fail(".counters", "%v is more often than collectors want it; say 1s at least", frame.Time(s.Counters).Duration())
	default:
		o.Counters = frame.Time(s.Counters)
	}
	if sflow && (s.Port != "" || s.OneIn == 0 && s.Counters == 0 || s.Everflow != nil || len(s.Match)+len(s.Drops) > 0 || s.Pauses) {
		return fail(".format", "sflow sends an address samples and counters, and nothing else: say to, and one_in or counters, and take what else there is into another session")
	}
	if s.Snap != 0 && s.Snap < mirror.LeastSnap {
		return fail(".snap", "%d bytes of a packet do not show its headers in tunnels; keep %d", s.Snap, mirror.LeastSnap)
	}
	if cfg.PFC.Mode != 0 && cfg.PFC.Classes>>s.Class&1 != 0 {
		return fail(".class", "class %d is lossless: copies would pause those who are watched; choose one that is not in pfc.classes", s.Class)
	}
	from, counted := len(c.Rules), uint64(0) // counted are rules of which nothing is copied
	if s.Everflow != nil {
		for _, r := range mirror.Default(uint8(*s.Everflow.Sample), 0)[1:] { // without that about copies
			if r.Name == "sample" && *s.Everflow.Sample == 0 {
				continue
			}
			if r.DSCP == mirror.DebugDSCP && len(s.Everflow.From) > 0 {
				for k, net := range s.Everflow.From {
					admitted := r
					admitted.Src = net
					if admitted.Name = s.Name + "/debug"; k > 0 {
						admitted.Name += "-" + strconv.Itoa(k+1)
					}
					if _, err := mirror.NewClassifier([]mirror.Rule{admitted}); err != nil {
						return fail(fmt.Sprintf(".everflow.debug_from[%d]", k), "%w", err)
					}
					c.Rules = append(c.Rules, admitted)
				}
				counted = 1 << len(c.Rules)
				r.Name += "-all"
			}
			r.Name = s.Name + "/" + r.Name
			c.Rules = append(c.Rules, r)
		}
		for d := range cfg.Class.DSCP {
			if a, b := cfg.Class.DSCP[d], cfg.Class.DSCP[d^mirror.DebugDSCP]; a != b {
				return fail(".everflow", "DSCP %d and %d have the classes %d and %d, and the bit between them asks for a trace: the trace of a packet would not show what happens to the packet; give both one class", min(d, d^1), max(d, d^1), min(a, b), max(a, b))
			}
		}
	}
	for k := range s.Match {
		if s.Match[k].Control && s.Port != "" {
			return fail(fmt.Sprintf(".match[%d].mac_control", k), "copies that leave by a port without headers would pause the receiver: send them to a collector by to in place of port")
		}
		r := s.Match[k].Rule()
		r.Name = s.Name + "/" + r.Name
		if _, err := mirror.NewClassifier([]mirror.Rule{r}); err != nil {
			return fail(fmt.Sprintf(".match[%d]", k), "%w", err)
		}
		c.Rules = append(c.Rules, r)
	}
	for k := from; k < len(c.Rules) && k < mirror.MaxRules; k++ {
		o.Rules |= 1 << k &^ counted
	}
	for k, name := range s.Drops {
		if err := o.Drops.add(name); err != nil {
			return fail(".drops["+strconv.Itoa(k)+"]", "%w", err)
		}
	}
	if o.Rules == 0 && o.OneIn == 0 && o.Drops.none() && !o.Pauses && o.Counters == 0 {
		return fail("", "the session takes no copies; say which by everflow, match, one_in, drops or own_pauses")
	}
	c.Sessions = append(c.Sessions, o)
	return nil
}

// ownAddress is the address of a switch by which others know it.
func ownAddress(cfg *vswitch.Config) netip.Addr {
	for _, a := range cfg.Loopbacks {
		if a.Is4() {
			return a
		}
	}
	for i := range cfg.Ports {
		for _, p := range cfg.Ports[i].Addresses {
			if p.Addr().Is4() {
				return p.Addr()
			}
		}
	}
	return netip.Addr{}
}

// Reasons is a set of reasons of drops.
type Reasons [(int(frame.NumReasons) + 63) / 64]uint64

func (s *Reasons) has(r frame.Reason) bool { return s[r/64]>>(r%64)&1 != 0 }

func (s *Reasons) none() bool { return *s == Reasons{} }

// add adds a reason by its name.
func (s *Reasons) add(name string) error {
	if r, ok := reasons[name]; ok {
		s[r/64] |= 1 << (r % 64)
		return nil
	}
	if name != "all" {
		names := append(slices.Sorted(maps.Keys(reasons)), "all")
		if near := units.Nearest(name, names); near != "" {
			return fmt.Errorf("no frame is dropped because of %q; is %q meant?", name, near)
		}
		return fmt.Errorf("no frame is dropped because of %q; gswitch show drops lists the reasons that there were, all takes all", name)
	}
	for r := frame.Keep + 1; r < frame.NumReasons; r++ {
		if r.Loss() {
			s[r/64] |= 1 << (r % 64)
		}
	}
	return nil
}
