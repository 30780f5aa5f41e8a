package config

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/notice"
	"gswitch/rocc"
	"gswitch/rocc/point"
	"gswitch/units"
)

// config returns what a port of the given rate in bit/s has.
func (r *RoCC) config(rate units.Rate) point.Config {
	o := rocc.Options{Period: frame.Time(r.Period), QRef: uint32(r.QRef), QMid: uint32(r.QMid), QMax: uint32(r.QMax),
		Alpha: r.Alpha, Beta: r.Beta, FMin: uint64(r.FMin), First: rocc.Cuts[r.Cut], Regions: r.Regions}
	out := point.Config{Params: o.At(uint64(rate)), PerTick: r.PerTick, AtHosts: r.Compute == "hosts",
		Table: rocc.TableConfig{Kind: rocc.Kinds[r.Table], Flows: r.Flows, Age: r.Age, Sample: r.Sample, Shadow: r.Shadow}}
	for _, q := range r.Queues {
		out.Queues |= 1 << q
	}
	return out
}

// noticeCode is the code point of notices, CS7.
const noticeCode = 56

// validateRoCC checks what ports get from a queue profile. What several ports
// have in common is said once.
func (d decoder) validateRoCC(s *Switch, profile string, path string) {
	r := s.QoS[profile].RoCC
	if r == nil {
		return
	}
	for key, size := range map[string]units.Size{"qref": r.QRef, "qmid": r.QMid, "qmax": r.QMax} {
		if size >= 1<<32 {
			d.Fail(path+"."+key, "%s is more than 4 GiB", size)
			return
		}
	}
	var all, unrated []string
	var rates []units.Rate
	at := map[units.Rate][]string{}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.QoS != profile {
			continue
		}
		all = append(all, p.name())
		if p.Rate == 0 {
			unrated = append(unrated, p.name())
			continue
		}
		if at[p.Rate] == nil {
			rates = append(rates, p.Rate)
		}
		at[p.Rate] = append(at[p.Rate], p.name())
	}
	if len(unrated) > 0 && d.OK() { // else its key may be among those that are misspelt
		has, it := "has", "it"
		if len(unrated) > 1 {
			has, it = "have", "them"
		}
		d.Fail(path, "%s %s no rate, of which flows could have a share; give %s one, or another profile", ports(unrated), has, it)
	}
	for _, rate := range rates {
		c := r.config(rate)
		if err := c.Params.Validate(); err != nil && !d.Refused(path) {
			d.Fail(path, "at %s of %s: %v", ports(at[rate]), rate, err)
		}
		d.roomForReference(s, r, &c, path, ports(at[rate]))
		d.roomForNotices(&c, rate, path, ports(at[rate]))
	}
	if len(all) > 0 {
		d.noticesPass(s, path, "notices at "+ports(all))
	}
}

// noticeBytes is what a notice over IPv6 takes on a link, at most: Ethernet and
// IPv6 headers, the message, what it quotes, and what is between frames.
const noticeBytes = 14 + 40 + notice.MaxLen + notice.QuoteMax + 24

// roomForNotices refuses a period whose notices would take more than all of
// what the port sends meanwhile: they leave by links like it, before all data,
// and the queue that they are about would be longer for them.
func (d decoder) roomForNotices(c *point.Config, rate units.Rate, path, ports string) {
	per := cmp.Or(c.PerTick, rocc.Share(&c.Params))
	sent := float64(rate) / 8 * c.Params.Period.Seconds()
	if took := float64(per * noticeBytes); took > sent && !d.Refused(path) {
		least := units.Duration(math.Ceil(took*8/float64(rate)*1e6) * 1e3)
		d.Fail(path, "at %s notices to %d flows take %s in a period of %v, in which the port sends %s: make the period at least %v, or tell fewer flows (per_tick)", ports, per, units.Size(took), units.Duration(c.Params.Period), units.Size(sent), least)
	}
}

// ports names ports in a sentence.
func ports(names []string) string {
	if len(names) == 1 {
		return "port " + names[0]
	}
	return "ports " + strings.Join(names, ", ")
}

// roomForReference refuses a queue that is full before it is as long as the
// point wants it: flows would be told to speed up while their frames are
// dropped. A lossy queue gets at most alpha times what it leaves free, beyond its
// reserve; lossless ones have no limit at egress.
func (d decoder) roomForReference(s *Switch, r *RoCC, c *point.Config, path, ports string) {
	b, qref := &s.Buffer, float64(c.Params.QRef)
	alpha := cmp.Or(b.Alpha, 1) // its default
	for _, q := range r.Queues {
		share := float64(b.Reserve) + alpha*float64(b.Size)/(1+alpha)
		switch {
		case d.Refused(path):
			return
		case slices.Contains(s.PFC.Classes, q):
		case b.Limit > 0 && float64(b.Limit)+float64(b.Reserve) < qref:
			d.Fail(path, "at %s queue %d is to be held at %s, and buffer.limit drops beyond %s: the fair rate would only rise; lower qref or raise the limit", ports, q, units.Size(c.Params.QRef), b.Limit)
			return
		case b.Size > 0 && share < qref:
			d.Fail(path, "at %s queue %d is to be held at %s, and of a buffer of %s with alpha %g it gets no more than %s: the fair rate would only rise; lower qref or raise buffer.size", ports, q, units.Size(c.Params.QRef), b.Size, alpha, units.Size(share))
			return
		}
	}
}
