package point

import (
	"errors"
	"fmt"
	"math"

	"gswitch/frame"
	"gswitch/notice"
	"gswitch/rocc"
	"gswitch/units"
)

// Section is rocc in documents.
type Section struct {
	Period  units.Duration `yaml:"period" doc:"T: time between two updates. 40us at 40 and 100Gbps, in proportion at other rates, if left out."`
	QRef    units.Size     `yaml:"qref" range:"0,4294967295" doc:"Length that is held. 300KB at 100Gbps, else 150KB, if left out."`
	QMid    units.Size     `yaml:"qmid" range:"0,4294967295" doc:"Growth within a period that halves the rate. Twice qref if left out."`
	QMax    units.Size     `yaml:"qmax" range:"0,4294967295" doc:"Length that cuts it. 2.4 times qref, at 100Gbps 2.2 times, if left out."`
	Alpha   float64        `yaml:"alpha" range:"0,1000" doc:"Gain of the deviation from qref, in 1/4000 of the rate (1/10000 at 100Gbps) for 600 bytes. 0.3, 0.45 at 100Gbps, if left out."`
	Beta    float64        `yaml:"beta" range:"0,1000" doc:"Gain of the growth. Five times alpha if left out."`
	FMin    units.Rate     `yaml:"fmin" doc:"Least fair rate. 1/400 of the link's, 1/1000 at 100Gbps, if left out."`
	Cut     string         `yaml:"cut" enum:"fmin,half,eighth" default:"fmin" doc:"What the fair rate becomes when the queue is longer than qmax: the least, half, or an eighth of the link's."`
	Regions int            `yaml:"regions" range:"1,16" default:"6" doc:"Ranges of the rate with gains of their own (auto-tuning); 1: none."`
	Table   string         `yaml:"table" enum:"queue,aged,afd,trap,bubble" default:"queue" doc:"Which flows are notified. queue: those with a packet in the queue. aged: those that sent within age periods. afd: those with a packet among shadow sampled ones (AFD). trap, bubble: the largest, as ElephantTrap and BubbleCache find them."`
	Flows   int            `yaml:"flows" range:"1,1048576" doc:"Flows that the table can hold. 4096 of queue, as many as can have fmin (no more than 1024) of aged, 1024 of afd, 128 of trap and bubble if left out."`
	Age     int            `yaml:"age" range:"1,1048576" doc:"Periods without a packet, or a sampled one, after which a flow is removed; of bubble, periods of a round. 10 of aged and bubble, 100 of afd and trap if left out. No part of queue."`
	Sample  int            `yaml:"sample" range:"1,65536" default:"8" doc:"One in so many packets is looked at, of afd and trap; bubble begins with it."`
	Shadow  int            `yaml:"shadow" range:"1,1048576" default:"1024" doc:"Sampled packets in the shadow buffer of afd."`
	Compute string         `yaml:"compute" enum:"switch,hosts" default:"switch" doc:"Who works out the fair rate. hosts: notices have the length of the queue and its parameters, and each host runs the controller; hosts that miss different notices drift apart."`
	PerTick int            `yaml:"per_tick" range:"0,1048576" doc:"Flows that are notified in a period, in turn. As many as can have fmin, but no more than 1024, if left out."`
}

// params are those of a port whose link has a rate in bit/s.
func (s *Section) params(rate uint64) rocc.Params {
	o := rocc.Options{Period: frame.Time(s.Period), QRef: uint32(s.QRef), QMid: uint32(s.QMid), QMax: uint32(s.QMax),
		Alpha: s.Alpha, Beta: s.Beta, FMin: uint64(s.FMin), First: rocc.Cuts[s.Cut], Regions: s.Regions}
	return o.At(rate)
}

// Options returns the Config of a port.
func (s *Section) Options(queues uint8, rate uint64) (any, error) {
	if rate == 0 {
		return nil, errors.New("a port without a rate has none of which flows could have a share; give it one, or another profile")
	}
	c := Config{Queues: queues, Params: s.params(rate), PerTick: s.PerTick, AtHosts: s.Compute == "hosts",
		Table: rocc.TableConfig{Kind: rocc.Kinds[s.Table], Flows: s.Flows, Age: s.Age, Sample: s.Sample, Shadow: s.Shadow}}
	return c, c.validate()
}

// noticeBytes is what a notice over IPv6 takes on a link, at most: Ethernet and
// IPv6 headers, the message, what it quotes, and what is between frames.
const noticeBytes = 14 + 40 + notice.MaxLen + notice.QuoteMax + 24

// CheckRate refuses a period whose notices would take more than all of what the port
// sends meanwhile: they leave by links like it, before all data, and the queue
// that they are about would be longer for them.
func (s *Section) CheckRate(rate uint64) error {
	c := Config{Params: s.params(rate), PerTick: s.PerTick}
	per := c.perTick()
	sent := float64(rate) / 8 * c.Params.Period.Seconds()
	took := float64(per * noticeBytes)
	if took <= sent {
		return nil
	}
	least := units.Duration(math.Ceil(took*8/float64(rate)*1e6) * 1e3)
	return fmt.Errorf("notices to %d flows take %s in a period of %v, in which the port sends %s: make the period at least %v, or notify fewer flows (per_tick)", per, units.Size(took), units.Duration(c.Params.Period), units.Size(sent), least)
}

// Depth returns the reference.
func (s *Section) Depth(rate uint64) uint64 { return uint64(s.params(rate).QRef) }
