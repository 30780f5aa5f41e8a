package transport

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/options"
)

// Kind is a scheme of loss recovery: its description for listings, its properties, and
// its rules. There is one Kind for each scheme, made by Register; a Config points to it.
type Kind struct {
	Name  string // as configurations write it
	Title string // one line
	Paper string // where it is published
	Cite  string // the same in three words
	Note  string // what else its user must know
	// Code identifies it in connection requests between hosts. It never changes. Those of
	// other modules are from OwnCodes on, and below 255.
	Code   uint8
	Params []options.Param

	Keeps bool // the receiver keeps packets that are out of order
	SACKs bool // a NAK names the packet that caused it

	Capped bool // Config.Cap is the bandwidth-delay product of the path (IRN's BDP-FC)

	// Transparent says that channels of the transparent mode (hostnic/bump) may have it, in
	// which packets of others travel that come and go as they like.
	Transparent bool

	LowRTO    bool // the timer starts with Config.RTOLow
	Dynamic   bool // the timeout always depends on round trips
	Pipe      bool // SACKed and lost packets leave the flight (RFC 6675)
	Windowed  bool // retransmissions respect the window, but for the first of an episode
	DupThresh int  // packets that must have arrived above a lost one, where Config has none; 0 = 1

	// Set stores the options where the sender and the receiver read them. nil: there are
	// none.
	Set func(c *Config, v *options.Values)
	// Nak processes a NAK that names no packet; advanced: it has also moved the
	// cumulative acknowledgement. NAKs that name packets need no rule: see Sender.Ack.
	Nak func(s *Sender, now frame.Time, advanced bool, r *AckResult)
	// Step is called after the cumulative acknowledgement has moved, in an episode of
	// recovery or after duplicates.
	Step func(s *Sender, now frame.Time, r *AckResult)
	// Resent, if not nil, is called after a selective retransmission.
	Resent func(s *Sender)
	// Expired starts the recovery after a timeout.
	Expired func(s *Sender, now frame.Time)

	defaults Config
}

// OwnCodes is the first code for schemes of other modules.
const OwnCodes = 128

func (k *Kind) String() string { return k.Name }

// MarshalJSON writes the description, without the fields that are for the program only.
func (k *Kind) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name   string          `json:"name"`
		Title  string          `json:"title"`
		Paper  string          `json:"paper"`
		Cite   string          `json:"cite"`
		Note   string          `json:"note,omitempty"`
		Params []options.Param `json:"params"`
	}{k.Name, k.Title, k.Paper, k.Cite, k.Note, k.Params})
}

var kinds []*Kind

// Register adds a scheme of another module. Packages call it when they are initialized. It
// panics if the description is wrong, which is a defect of the program and shows at
// start-up.
func Register(k Kind) *Kind {
	if k.Code < OwnCodes || k.Code == 255 { // which records have no room for
		panic(fmt.Sprintf("transport: %s has code %d; those of other modules are from %d to 254", k.Name, k.Code, OwnCodes))
	}
	return register(k)
}

// register adds a scheme, whatever its code.
func register(k Kind) *Kind {
	for i := range k.Params {
		if err := k.checkOption(i); err != nil {
			panic(fmt.Sprintf("transport: %s: %v", k.Name, err))
		}
	}
	if k.Step == nil || k.Expired == nil || k.Nak == nil && !k.SACKs || k.Set == nil && len(k.Params) > 0 {
		panic(fmt.Sprintf("transport: %s lacks a rule", k.Name))
	}
	if slices.ContainsFunc(kinds, func(o *Kind) bool { return o.Name == k.Name || o.Code == k.Code }) {
		panic(fmt.Sprintf("transport: name %q or code %d is registered twice", k.Name, k.Code))
	}
	var err error
	if k.defaults, err = k.Configure(nil); err != nil {
		panic(fmt.Sprintf("transport: %v", err))
	}
	kinds = append(kinds, &k)
	slices.SortFunc(kinds, func(a, b *Kind) int { return int(a.Code) - int(b.Code) })
	return &k
}

// reserved are the keys that options stand beside in scenarios (hosts.transport).
var reserved = []string{"mode", "params", "cap", "rto_low", "rto_high", "auto_rto", "ack_every", "rc3"}

// checkOption says what is wrong with an option. Documents have one key for the options of
// a name, so those of all schemes are of one unit.
func (k *Kind) checkOption(i int) error {
	p := &k.Params[i]
	if err := p.Check(); err != nil {
		return err
	}
	if slices.Contains(reserved, p.Name) {
		return fmt.Errorf("option %q has the name of a key that all schemes share; take another name", p.Name)
	}
	for _, q := range k.Params[:i] {
		if q.Name == p.Name {
			return fmt.Errorf("option %q is described twice", p.Name)
		}
	}
	for _, o := range kinds {
		for _, q := range o.Params {
			if q.Name == p.Name && q.Unit != p.Unit {
				return fmt.Errorf("option %q is a %s, but %s has one of this name that is a %s; take another name", p.Name, p.Unit, o.Name, q.Unit)
			}
		}
	}
	return nil
}

// Kinds returns all schemes, in the order of their codes.
func Kinds() []*Kind { return slices.Clone(kinds) }

// Names returns the names of all schemes, in the order of their codes.
func Names() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}

// TransparentNames is Names of those that serve the transparent mode.
func TransparentNames() []string {
	var names []string
	for _, k := range kinds {
		if k.Transparent {
			names = append(names, k.Name)
		}
	}
	return names
}

// Lookup returns the scheme with a name.
func Lookup(name string) (*Kind, error) {
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return nil, fmt.Errorf("loss recovery %q is not known; known are %s", name, strings.Join(Names(), ", "))
}

// ByCode returns the scheme with the code of a connection request, nil if there is none.
func ByCode(code uint8) *Kind {
	for _, k := range kinds {
		if k.Code == code {
			return k
		}
	}
	return nil
}

// Configure returns the configuration of a scheme with the given options, by name and in
// the notation of options.Param; omitted ones have their defaults. Settings that all
// schemes share are left zero. The error names the option.
func (k *Kind) Configure(given map[string]string) (Config, error) {
	c := Config{Recovery: k}
	v, err := options.Parse(k.Params, given)
	if err != nil {
		return c, fmt.Errorf("%s: %w", k.Name, err)
	}
	if k.Set != nil {
		k.Set(&c, &v)
	}
	return c, nil
}

// Defaults returns the configuration of a scheme without options, as Configure does.
func (k *Kind) Defaults() Config { return k.defaults }

// Options that several schemes have.
var (
	rulesParam = options.Param{Name: "rules", Unit: options.Choice, Default: "authors", Choices: []string{"authors", "text"}, Source: "authors' hardware code (irn-vivado-hls); text: IRN section 3.1",
		Doc: "authors: a recovery ends when all is acknowledged that was sent before its last retransmission, and every step of the cumulative acknowledgement within it retransmits the packet at it, once. text: before its first retransmission, and only what a selective acknowledgement stands above is lost"}
	restartParam = options.Param{Name: "restart", Unit: options.Choice, Default: "every", Choices: []string{"every", "progress"}, Source: "ours: the paper does not say; with it incast comes out as in IRN section 4.4.3",
		Doc: "which acknowledgements restart the timer: every one, or those that move the cumulative one"}
	nParam = options.Param{Name: "n", Unit: options.Count, Default: "3", Max: 1e6, Source: "IRN section 4.1",
		Doc: "packets in flight up to which the low timeout counts"}
	retransmitDelayParam = options.Param{Name: "retransmit_delay", Unit: options.Time, Default: "0", Max: 1e9, Source: "IRN section 6.3 (2us)",
		Doc: "time from noticing a loss to the retransmission, as if it had to be fetched from the host's memory"}
	dynamicRTOParam = options.Param{Name: "dynamic_rto", Unit: options.Flag, Default: "false", Source: "RFC 6298",
		Doc: "take the timeout from the round trips that are seen, with exponential back-off"}
	nakIntervalParam = options.Param{Name: "nak_interval", Unit: options.Time, Default: "0", Max: 1e12, Source: "authors' HPCC simulator has 500us",
		Doc: "the receiver reports the same gap again after this long; 0: never"}
	nakEveryParam = options.Param{Name: "nak_every", Unit: options.Flag, Default: "false", Source: "ours",
		Doc: "the receiver answers every packet out of order with a NAK"}
	nackThresholdParam = options.Param{Name: "nack_threshold", Unit: options.Count, Default: "1", Min: 1, Max: 255, Source: "IRN section 3.1",
		Doc: "packets above a gap that must have arrived before it counts as a loss; more where the network reorders"}
	dupThreshParam = options.Param{Name: "nack_threshold", Unit: options.Count, Default: "3", Min: 1, Max: 255, Source: "RFC 6675 section 2, DupThresh",
		Doc: "packets above a gap that must have arrived before it counts as a loss"}
	partialAckParam = options.Param{Name: "partial_ack", Unit: options.Flag, Default: "false", Source: "ours",
		Doc: "an acknowledgement within a recovery that a timeout began retransmits the next missing packet, so that the loss of a whole tail costs one timeout"}
)
