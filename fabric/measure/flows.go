package measure

import (
	"slices"

	"gswitch/fabric/results"
	"gswitch/frame"
)

// flows keeps every flow of a run.
type flows struct {
	all    []results.Flow
	group  []int32
	events []map[uint32]*span // of flows that belong together, by group
	rtts   [][]float64        // of messages of one frame, by group
	single [][]float64        // their slowdowns
	retx   []uint64           // frames sent again, by group; of streams too
	late   []bool             // of each flow: a sender's timer ran out
	first  []frame.Time       // start of the first flow of a group
	last   []frame.Time       // end of the last one
}

// span is the time from the first start to the last end of what belongs together.
type span struct {
	from, to frame.Time
	open     int
}

func (f *flows) init(cfg *Config) {
	n := len(cfg.Groups)
	f.events = make([]map[uint32]*span, n)
	for i := range f.events {
		f.events[i] = map[uint32]*span{}
	}
	f.rtts, f.single, f.retx = make([][]float64, n), make([][]float64, n), make([]uint64, n)
	f.first, f.last = make([]frame.Time, n), make([]frame.Time, n)
	for i := range f.first {
		f.first[i] = frame.Never
	}
}

// Start notes that a flow starts and returns its number, -1 if it does not
// count: a piece of a stream, or one that starts during the warm-up. event
// numbers what it belongs to.
func (r *Recorder) Start(now frame.Time, group int, event uint32, src, dst string, bytes uint64, ideal frame.Time) int {
	f := &r.flows
	f.first[group] = min(f.first[group], now)
	if r.cfg.Streams[group] || now < r.cfg.Warmup {
		return -1
	}
	e := f.events[group][event]
	if e == nil {
		e = &span{from: now}
		f.events[group][event] = e
	}
	e.open++
	f.all = append(f.all, results.Flow{ID: len(f.all), Src: src, Dst: dst, Group: r.cfg.Groups[group], Bytes: bytes, Start: now.Seconds(), Ideal: ideal.Seconds()})
	f.group = append(f.group, int32(group))
	f.late = append(f.late, false)
	return len(f.all) - 1
}

// Done notes that a flow is complete: number is what Start returned, fct its
// completion time, rtt the time to its acknowledgement.
func (r *Recorder) Done(now frame.Time, number, group int, event uint32, fct, rtt frame.Time) {
	f := &r.flows
	r.Retrieved(now, number, group, event, fct)
	if number < 0 || now > r.closed {
		return
	}
	if w := &f.all[number]; w.Bytes <= r.cfg.Frame {
		f.rtts[group] = append(f.rtts[group], rtt.Seconds())
		f.single[group] = append(f.single[group], w.Slowdown)
	}
}

// Retrieved is Done of what has no acknowledgement of its own, such as a
// request with its answer.
func (r *Recorder) Retrieved(now frame.Time, number, group int, event uint32, fct frame.Time) {
	f := &r.flows
	f.last[group] = now
	if number < 0 || now > r.closed {
		return
	}
	w := &f.all[number]
	w.FCT = fct.Seconds()
	w.Slowdown = max(1, w.FCT/w.Ideal)
	if e := f.events[group][event]; e != nil {
		e.to = now
		e.open--
	}
}

// Repaired notes what it took to bring a message of a flow over: frames sent
// again, timeouts.
func (r *Recorder) Repaired(now frame.Time, number, group int, retransmissions, timeouts uint32) {
	f := &r.flows
	f.retx[group] += uint64(retransmissions)
	if number >= 0 && now <= r.closed {
		f.all[number].Retrans += retransmissions
		f.late[number] = f.late[number] || timeouts > 0
	}
}

// Reideal replaces the ideal completion time of every flow by what ideal
// returns for it, and what follows from it.
func (r *Recorder) Reideal(ideal func(w *results.Flow) float64) {
	f := &r.flows
	for g := range f.single {
		f.single[g] = f.single[g][:0]
	}
	for i := range f.all {
		w := &f.all[i]
		w.Ideal = ideal(w)
		if w.FCT == 0 {
			continue
		}
		w.Slowdown = max(1, w.FCT/w.Ideal)
		if w.Bytes <= r.cfg.Frame {
			f.single[f.group[i]] = append(f.single[f.group[i]], w.Slowdown)
		}
	}
}

// Flows returns how many flows were started and how many of them are not
// complete; pieces of streams do not count.
func (r *Recorder) Flows() (started, open int) {
	for i := range r.flows.all {
		if r.flows.all[i].FCT == 0 {
			open++
		}
	}
	return len(r.flows.all), open
}

// values adds what is known of the flows of a group, -1: of all.
func (f *flows) values(put func(string, float64), group int) {
	var rtt, single []float64
	retx := uint64(0)
	for g := range f.rtts {
		if group < 0 || g == group {
			rtt, single = append(rtt, f.rtts[g]...), append(single, f.single[g]...)
			retx += f.retx[g]
		}
	}
	put("retransmissions_total", float64(retx))
	if f.times(put, func(i int) bool { return group < 0 || int(f.group[i]) == group }) == 0 {
		return
	}
	summary(put, "rtt", "seconds", rtt)
	summary(put, "single_slowdown", "", single)
	if group >= 0 {
		var together []float64
		for _, e := range f.events[group] {
			if e.open == 0 {
				together = append(together, (e.to - e.from).Seconds())
			}
		}
		summary(put, "completion", "seconds", together)
	}
}

// times adds how many of the flows that in chooses are complete and how long
// they took, and returns how many they are.
func (f *flows) times(put func(string, float64), in func(i int) bool) (n int) {
	var fct, slow, rates []float64
	var bytes, weighted float64
	late := 0
	for i := range f.all {
		if !in(i) {
			continue
		}
		n++
		if f.late[i] {
			late++
		}
		if f.all[i].FCT > 0 {
			fct, slow = append(fct, f.all[i].FCT), append(slow, f.all[i].Slowdown)
			rates = append(rates, 8*float64(f.all[i].Bytes)/f.all[i].FCT)
			bytes += float64(f.all[i].Bytes)
			weighted += float64(float64(f.all[i].Bytes) * f.all[i].FCT)
		}
	}
	if n == 0 {
		return 0
	}
	put("flows_total", float64(n))
	put("flows_unfinished_total", float64(n-len(fct)))
	put("timeout_share", float64(late)/float64(n))
	summary(put, "fct", "seconds", fct)
	if bytes > 0 {
		put("fct_bytes_mean_seconds", weighted/bytes)
		put("flow_rate_mean_bps", results.Mean(rates))
		put("flow_rate_deviation_bps", results.Deviation(rates))
	}
	summary(put, "slowdown", "", slow)
	return n
}

// summary adds mean and percentiles of x.
func summary(put func(string, float64), name, unit string, x []float64) {
	slices.Sort(x)
	m := map[string]float64{}
	results.Summarize(m, name, unit, x)
	for k, v := range m {
		put(k, v)
	}
}
