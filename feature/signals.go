package feature

import (
	"fmt"
	"slices"
	"strings"
)

// Signals is a set of what signals congestion to a sender. Congestion control says
// what it reads (cc.Info), of which one is enough, and features of switches what
// they give.
type Signals uint16

const (
	Losses      Signals = 1 << iota // frames that were lost
	RoundTrips                      // round-trip times
	CNPs                            // congestion notification packets, for marks that arrived
	EchoedMarks                     // marks in acknowledgements
	Telemetry                       // of each hop, in data frames
	FairRates                       // that switches work out
	Quantized                       // feedback of congestion points (IEEE 802.1Qau)
)

// signalNames are what listings show, in the order of the bits.
var signalNames = [...]string{"losses", "round trip times", "CNPs", "echoed marks", "telemetry of each hop", "fair rates of switches", "quantized feedback"}

// String names them: "nothing", or such as "CNPs, or echoed marks".
func (s Signals) String() string {
	var names []string
	for i, name := range signalNames {
		if s>>i&1 != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "nothing"
	}
	return strings.Join(names, ", or ")
}

// MarshalText writes them as String does, for listings.
func (s Signals) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *Signals) UnmarshalText(text []byte) error {
	*s = 0
	if string(text) == Signals(0).String() {
		return nil
	}
	for _, name := range strings.Split(string(text), ", or ") {
		i := slices.Index(signalNames[:], name)
		if i < 0 {
			return fmt.Errorf("%q is no signal of congestion; known are %s", name, strings.Join(signalNames[:], ", "))
		}
		*s |= 1 << i
	}
	return nil
}
