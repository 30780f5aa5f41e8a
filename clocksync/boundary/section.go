package boundary

import (
	"errors"
	"fmt"
	"slices"

	"gswitch/clocksync"
	"gswitch/frame"
	"gswitch/units"
	"gswitch/vswitch"
)

// Section is clock in documents of switches.
type Section struct {
	clocksync.Times
	Root       bool           `yaml:"root" doc:"true: all others follow this clock. It begins with the machine's time (UTC) and goes on by its oscillator. Without it, parent says which clock is followed."`
	Controlled bool           `yaml:"controlled" doc:"true: a controller plans which one this clock follows (gcollect clock run), and until then it follows none. In place of root, parent, second, ports and takeover."`
	Parent     string         `yaml:"parent" doc:"Port by which sync messages of the root are received."`
	Second     string         `yaml:"second" doc:"Port that the clock turns to when no sync message comes by the first within the timeout, or only invalid ones."`
	Ports      []string       `yaml:"ports" doc:"Ports by which sync messages are sent. All but the parent's if left out."`
	Slaves     []string       `yaml:"slaves" doc:"Ports behind which are slaves that know PTP alone, such as ptp4l: they get plain messages."`
	Takeover   units.Duration `yaml:"takeover" doc:"Time without a sync message, behind timeout, after which this clock becomes the root. For one clock of a network: another neighbour of the root. Never if left out."`
	Hops       int            `yaml:"hops" range:"1,254" default:"1" doc:"Hops from the root, by parent."`
	Announce   units.Duration `yaml:"announce" default:"1s" doc:"Between Announce messages to slaves."`
}

// Options returns the clocksync.Options of a switch.
func (s *Section) Options(cfg *vswitch.Config) (any, error) {
	port := func(key, name string) (int, error) {
		at := slices.IndexFunc(cfg.Ports, func(p vswitch.PortConfig) bool { return p.Name == name })
		switch {
		case name == "":
			return clocksync.NoPort, nil
		case at < 0:
			return 0, &vswitch.KeyError{Key: key, Err: fmt.Errorf("there is no port %q", name)}
		case at >= clocksync.MaxPorts:
			return 0, &vswitch.KeyError{Key: key, Err: fmt.Errorf("port %q is number %d: a clock uses the first %d", name, at, clocksync.MaxPorts)}
		}
		return at, nil
	}
	switch {
	case s.Controlled && (s.Root || s.Parent != "" || s.Second != "" || len(s.Ports) != 0 || s.Takeover != 0):
		return nil, &vswitch.KeyError{Key: "controlled", Err: errors.New("the controller says who is followed: leave root, parent, second, ports and takeover out")}
	case s.Root && (s.Parent != "" || s.Second != "" || s.Takeover != 0):
		return nil, &vswitch.KeyError{Key: "root", Err: errors.New("a root receives no sync messages: leave parent, second and takeover out")}
	case !s.Root && !s.Controlled && s.Parent == "":
		return nil, &vswitch.KeyError{Key: "parent", Err: errors.New("say by which port sync messages of the root are received, or root: true, or controlled: true")}
	case s.Second == s.Parent && s.Second != "":
		return nil, &vswitch.KeyError{Key: "second", Err: errors.New("is the same port as parent")}
	}
	accept, err := port("parent", s.Parent)
	if err != nil {
		return nil, err
	}
	backup, err := port("second", s.Second)
	if err != nil {
		return nil, err
	}
	o, err := s.Times.Options(s.Hops, accept, backup)
	if err != nil {
		return nil, &vswitch.KeyError{Key: "most_hops", Err: err}
	}
	o.Root, o.Idle, o.Timeout2, o.Announce = s.Root, s.Controlled, frame.Time(s.Takeover), frame.Time(s.Announce)
	if s.Root {
		o.EpsBase, o.EpsBackup = 0, 0
	}
	for _, k := range []struct {
		key   string
		names []string
		to    *clocksync.Ports
	}{{"ports", s.Ports, &o.Transmit}, {"slaves", s.Slaves, &o.Plain}} {
		for i, name := range k.names {
			key := fmt.Sprintf("%s[%d]", k.key, i)
			at, err := port(key, name)
			switch {
			case err != nil:
				return nil, err
			case at == accept:
				return nil, &vswitch.KeyError{Key: key, Err: errors.New("is the port of the parent, or none")}
			}
			k.to.Add(at)
		}
	}
	for at := range cfg.Ports {
		if len(s.Ports) == 0 && !s.Controlled && at != accept && at < clocksync.MaxPorts && cfg.Ports[at].Name != "" {
			o.Transmit.Add(at)
		}
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return o, nil
}
