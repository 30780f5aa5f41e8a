package mirror

import "math"

// Load is a network whose switches copy packets, for which collectors are sized
// (sections 3 and 8 of the paper).
type Load struct {
	Traffic float64 // bits/s, each packet counted once
	Packet  float64 // mean bytes of a packet
	Hops    float64 // switches that a packet comes by
	Share   float64 // of the packets that are copied
	Copy    float64 // mean bytes of a copy, with its headers
}

// Rate is what all copies take, in bits/s.
func (l *Load) Rate() float64 { return l.Packets() * l.Copy * 8 }

// Packets is how many copies there are in a second.
func (l *Load) Packets() float64 { return l.Traffic / (8 * l.Packet) * l.Hops * l.Share }

// Analyzer is what one collector can take.
type Analyzer struct {
	Packets float64 // copies per second
	Rate    float64 // bits/s
}

// For is how many analyzers it takes for copies.
func (a Analyzer) For(packets, rate float64) int {
	return int(math.Ceil(max(packets/a.Packets, rate/a.Rate)))
}

// Counters is what an analyzer sends to where counters are kept, in bytes/s: of every
// link six of its load and four of a histogram of latencies, 20 bytes each.
func Counters(links int, every float64) float64 { return float64(links) * (6 + 4) * 20 / every }

// Kept is what whole traces take that are kept, in bytes/s: a share of all copies.
func Kept(rate, share float64) float64 { return rate * share / 8 }

// Held is what an analyzer holds of traces that are not whole, in bytes at most.
func Held(a Analyzer, idle float64) float64 { return a.Rate * idle / 8 }
