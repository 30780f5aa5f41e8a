package vswitch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"gswitch/buffer"
	"gswitch/command"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/pipeline"
)

// Change is a change of a switch by the control plane: SetRoute, DeleteRoute,
// LearnRoutes, FlushFDB, TakeReports, CallFeature or Apply. Switch.Prepare turns it into a
// command.
type Change interface {
	// Encode appends the change to b. DecodeChange is its inverse.
	Encode(b []byte) []byte
	// prepare computes the result of the change, and returns a function that puts it in
	// force.
	prepare(sw *Switch) (func(frame.Time), error)
}

// SetRoute adds a route or replaces the one with the same prefix.
type SetRoute struct{ Route }

// DeleteRoute removes a route that SetRoute or the configuration made.
type DeleteRoute struct{ Prefix netip.Prefix }

// FlushFDB removes all learned addresses.
type FlushFDB struct {
	Removed int // number removed, set when it is done
}

// Apply replaces the whole configuration. On error nothing changes. Counters,
// learned addresses and queued frames stay.
type Apply struct {
	Config *Config
	// Document is the text that Config was made from. DecodeChange returns only the
	// document: decoding it must give the same Config.
	Document []byte
}

// TakeReports takes the reports of what systems have counted, in a switch that is
// recorded. The time at which reports are taken decides what is counted in which of them,
// so it belongs into the record.
type TakeReports struct {
	// System is the only one whose reports are taken; "": all.
	System string
	// Taken is called for each report with the worker, the system and the report's body,
	// which is valid until Taken returns. nil: discard the reports.
	Taken func(worker int, system string, body []byte)
}

// prepared is a change that has been prepared.
type prepared struct {
	Change
	commit func(now frame.Time)
}

// Do implements frame.Command.
func (c *prepared) Do(now frame.Time) { c.commit(now) }

// Prepare prepares a change, which may take long, and returns a command that puts it in
// force, between two steps of worker 0, or of Switch.Owner's for CallFeature. The other
// workers notice at their next Advance. Errors are found here, and then nothing changes. A
// command must be carried out before the next change is prepared.
func (sw *Switch) Prepare(c Change) (frame.Command, error) {
	commit, err := c.prepare(sw)
	if err != nil {
		return nil, err
	}
	return &prepared{c, commit}, nil
}

// Do prepares a change and carries it out at once, at the time of the last step. It may
// also be called by the code that steps the switch.
func (sw *Switch) Do(c Change) error { return sw.DoAt(sw.Nodes[0].now, c) }

// DoAt is Do at an instant.
func (sw *Switch) DoAt(now frame.Time, c Change) error {
	commit, err := c.prepare(sw)
	if err == nil {
		commit(now)
	}
	return err
}

func (c Apply) prepare(sw *Switch) (func(frame.Time), error) {
	prog, err := sw.compile(c.Config, len(sw.Nodes))
	if err != nil {
		return nil, err
	}
	if _, err := buffer.New(bufferConfig(c.Config, len(sw.Nodes), sw.Nodes[0].pool)); err != nil {
		return nil, fmt.Errorf("switch %s: %w", c.Config.Name, err)
	}
	old := sw.program.Load()
	return func(frame.Time) {
		sw.program.Store(prog)
		sw.bindAddresses(old, prog)
	}, nil
}

func (c SetRoute) prepare(sw *Switch) (func(frame.Time), error) {
	return sw.update(func(p *Program) error { return p.setRoute(c.Route, sw.ids.routes, nil) })
}

func (c DeleteRoute) prepare(sw *Switch) (func(frame.Time), error) {
	return sw.update(func(p *Program) error {
		if err := p.deleteRoute(c.Prefix); err != nil {
			return err
		}
		if r, ok := sw.learnedRoutes()[c.Prefix.Masked()]; ok { // no longer hidden
			_, _, err := p.learn([]Route{r}, nil, sw.ids.routes)
			return err
		}
		return nil
	})
}

// update makes the next program by applying a change to a shallow copy of this one.
func (sw *Switch) update(change func(*Program) error) (func(frame.Time), error) {
	next := *sw.program.Load()
	sw.gen++
	next.Gen = sw.gen
	if err := change(&next); err != nil {
		return nil, err
	}
	return func(frame.Time) { sw.program.Store(&next) }, nil
}

func (c *FlushFDB) prepare(sw *Switch) (func(frame.Time), error) {
	return func(frame.Time) { c.Removed = sw.fdb.Flush(false) }, nil
}

func (c TakeReports) prepare(sw *Switch) (func(frame.Time), error) {
	return func(frame.Time) {
		var b []byte
		for i, n := range sw.Nodes {
			for k := range n.stages.features {
				f := &n.stages.features[k]
				if source, ok := f.State.(feature.Reporter); ok && (c.System == "" || c.System == f.Name) {
					b = feature.TakeReports(source, b, func(body []byte) {
						if c.Taken != nil {
							c.Taken(i, f.Name, body)
						}
					})
				}
			}
		}
	}, nil
}

// The first byte of an encoded change.
const (
	setRouteKind    = 1
	deleteRouteKind = 2
	flushFDBKind    = 3
	applyKind       = 4
	takeReportsKind = 5
	learnRoutesKind = 6
	formerPlanKind  = 7 // of records of earlier versions
	callFeatureKind = 8
)

// Flags of an encoded route.
const chooseFlag = 2

var refusalFlags = [numRefusals]byte{Blackhole: 1, Unreachable: 4, Prohibit: 8}

// Encode implements Change.
func (c SetRoute) Encode(b []byte) []byte { return appendRoute(append(b, setRouteKind), &c.Route) }

func appendRoute(b []byte, r *Route) []byte {
	b = command.AppendPrefix(b, r.Prefix)
	flags := refusalFlags[r.Refuse]
	if r.Choose != nil {
		flags |= chooseFlag
	}
	if b = append(b, flags); r.Choose != nil {
		b = append(b, byte(*r.Choose))
	}
	b = binary.AppendUvarint(b, uint64(len(r.NextHops)))
	for _, h := range r.NextHops {
		b = binary.AppendUvarint(command.AppendAddr(b, h.Via), uint64(h.Weight))
	}
	return b
}

// Encode implements Change.
func (c DeleteRoute) Encode(b []byte) []byte {
	return command.AppendPrefix(append(b, deleteRouteKind), c.Prefix)
}

// Encode implements Change.
func (*FlushFDB) Encode(b []byte) []byte { return append(b, flushFDBKind) }

// Encode implements Change.
func (c TakeReports) Encode(b []byte) []byte {
	if b = append(b, takeReportsKind); c.System != "" {
		b = command.AppendString(b, c.System)
	}
	return b
}

// Encode implements Change.
func (c Apply) Encode(b []byte) []byte { return append(append(b, applyKind), c.Document...) }

// DecodeChange is the inverse of Change.Encode. It returns Apply without its Config.
func DecodeChange(b []byte) (Change, error) {
	if len(b) == 0 {
		return nil, errors.New("a change of a switch without a kind")
	}
	d := command.Decoder{B: b[1:]}
	var c Change
	switch b[0] {
	case setRouteKind:
		c = SetRoute{decodeRoute(&d)}
	case deleteRouteKind:
		c = DeleteRoute{d.Prefix()}
	case learnRoutesKind:
		c = decodeLearnRoutes(&d)
	case flushFDBKind:
		c = &FlushFDB{}
	case takeReportsKind:
		take := TakeReports{}
		if len(d.B) > 0 {
			take.System = d.String(longestName)
		}
		c = take
	case callFeatureKind:
		return decodeCall(&d)
	case formerPlanKind:
		return nil, errors.New("a plan of a clock as it was written before calls of features had names (kind 7): " +
			"replay the record with the version of the program that its header names")
	case applyKind:
		return Apply{Document: d.B}, nil
	default:
		return nil, fmt.Errorf("a change of a switch of the unknown kind %d", b[0])
	}
	if err := d.Err(fmt.Sprintf("a change of a switch of kind %d", b[0])); err != nil {
		return nil, err
	}
	return c, nil
}

func decodeRoute(d *command.Decoder) Route {
	r := Route{Prefix: d.Prefix()}
	flags := d.Byte(15)
	refuse := slices.Index(refusalFlags[:], flags&^chooseFlag)
	if refuse < 0 {
		d.Fail()
		return r
	}
	r.Refuse = Refusal(refuse)
	if flags&chooseFlag != 0 {
		kind := pipeline.Chooser(d.Byte(255))
		r.Choose = &kind
	}
	for n := d.Uvarint(1 << 16); n > 0 && !d.Bad(); n-- {
		r.NextHops = append(r.NextHops, NextHop{Via: d.Addr(), Weight: uint32(d.Uvarint(1<<32 - 1))})
	}
	return r
}
