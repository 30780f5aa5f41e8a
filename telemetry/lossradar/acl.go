package lossradar

import "gswitch/telemetry"

// Tuple is a five-tuple as an access list sees it: 104 bits.
type Tuple telemetry.Flow

// Tuple returns the five-tuple of a signature.
func (s Signature) Tuple() Tuple {
	return Tuple{s.Addrs, s.Rest>>32<<8&0xffffffff00 | s.Rest>>8&0xff}
}

// String returns the five-tuple as 10.0.0.1:1000 > 10.0.0.2:2000 protocol 17.
func (a Tuple) String() string { return telemetry.Flow(a).String() }

func (a Tuple) xor(b Tuple) Tuple { return Tuple{a.Addrs ^ b.Addrs, a.Rest ^ b.Rest} }
func (a Tuple) and(b Tuple) Tuple { return Tuple{a.Addrs & b.Addrs, a.Rest & b.Rest} }
func (a Tuple) or(b Tuple) Tuple  { return Tuple{a.Addrs | b.Addrs, a.Rest | b.Rest} }

// single reports whether exactly one bit is set.
func (a Tuple) single() bool {
	one := func(x uint64) bool { return x != 0 && x&(x-1) == 0 }
	return one(a.Addrs) && a.Rest == 0 || a.Addrs == 0 && one(a.Rest)
}

// ACLRule is a rule of an access list in ternary form. The first rule that
// matches decides; what none matches is accepted.
type ACLRule struct {
	Value, Mask Tuple
	Deny        bool
}

func (r *ACLRule) matches(p Tuple) bool { return p.xor(r.Value).and(r.Mask) == (Tuple{}) }

// Suspect is a rule in which one flipped bit explains the losses.
type Suspect struct {
	Rule  int  // index in the list
	Match bool // a bit of what it matches; else its action
}

// SuspectRules finds the rules of a list of which one bit, flipped in the
// hardware, would drop all of these packets, which the list as configured
// accepts (section 5.6.3). Rules after the one that accepts all of them cannot
// have seen them and are left out.
func SuspectRules(list []ACLRule, lost []Tuple) []Suspect {
	if len(lost) == 0 {
		return nil
	}
	hit := firstMatch(list, lost[0])
	for _, p := range lost[1:] {
		if hit >= 0 && firstMatch(list, p) != hit {
			hit = -1 // different rules accept them: none of these broke
		}
	}
	// What differs from a rule in each packet: the bits in which they all agree to
	// differ, and those in which any does.
	var out []Suspect
	last := 0
	for _, p := range lost {
		if m := firstMatch(list, p); m < 0 {
			last = len(list)
		} else {
			last = max(last, m)
		}
	}
	for i := range list[:last] {
		if list[i].Deny && list[i].oneFlipMatches(lost) {
			out = append(out, Suspect{Rule: i, Match: true})
		}
	}
	if hit >= 0 && !list[hit].Deny {
		// Its action flipped, or a bit of its match, so that a rule behind it denies.
		out = append(out, Suspect{Rule: hit})
		if deniedBehind(list, hit, lost) {
			out = append(out, Suspect{Rule: hit, Match: true})
		}
	}
	return out
}

// Denies reports whether a list as configured drops a packet: that is no loss to
// explain.
func Denies(list []ACLRule, p Tuple) bool {
	i := firstMatch(list, p)
	return i >= 0 && list[i].Deny
}

func firstMatch(list []ACLRule, p Tuple) int {
	for i := range list {
		if list[i].matches(p) {
			return i
		}
	}
	return -1
}

// oneFlipMatches reports whether the rule with one bit of its value or mask
// flipped would match all packets. Setting a bit of the mask only narrows it.
func (r *ACLRule) oneFlipMatches(lost []Tuple) bool {
	first := lost[0].xor(r.Value).and(r.Mask)
	same, any := true, first
	for _, p := range lost[1:] {
		d := p.xor(r.Value).and(r.Mask)
		same = same && d == first
		any = any.or(d)
	}
	return same && first.single() || any.single()
}

// deniedBehind reports whether all packets match a rule that denies once rule i
// does not match any more.
func deniedBehind(list []ACLRule, i int, lost []Tuple) bool {
	for _, p := range lost {
		j := firstMatch(list[i+1:], p)
		if j < 0 || !list[i+1+j].Deny {
			return false
		}
	}
	return true
}
