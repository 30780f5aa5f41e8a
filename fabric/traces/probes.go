package traces

import (
	"cmp"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/mirror"
)

// ProbeKey are values of a run about a series of probes.
func ProbeKey(name, what string) string { return "probe_" + key(name) + "_" + what }

// Series is what became of a series of probes.
type Series struct {
	ID        uint32 `json:"id"`
	Flow      string `json:"flow"`
	Path      string `json:"path"` // of the first that came through, or of the first
	Sent      int    `json:"sent"` // by the highest number that any switch saw
	Delivered int    `json:"delivered"`
	// Lost are those that did not come through, or were not seen at all.
	Lost int      `json:"lost"`
	At   []string `json:"lost_behind,omitempty"` // where they were seen last
	// From the first to the last copy of a probe that comes back to a switch where
	// it was: both stamps are of this switch.
	RoundTrips int        `json:"round_trips"`
	Mean       frame.Time `json:"mean_ns"`
	Max        frame.Time `json:"max_ns"`
}

// Probes are the series of probes, by number.
func (b *Book) Probes() []Series {
	at := map[uint32]*Series{}
	sums := map[uint32]frame.Time{}
	for _, t := range b.Done {
		if t.Probe == 0 {
			continue
		}
		v := b.Verdict(t)
		s := at[t.Probe]
		if s == nil {
			s = &Series{ID: t.Probe, Flow: v.Flow, Path: strings.Join(v.Path, " ")}
			at[t.Probe] = s
		}
		s.Sent = max(s.Sent, int(t.Number)+1)
		if v.Kind != Delivered {
			if v.At != "" && !slices.Contains(s.At, v.At) {
				s.At = append(s.At, v.At)
			}
			continue
		}
		if s.Delivered++; s.Delivered == 1 {
			s.Path = strings.Join(v.Path, " ")
		}
		if last := &t.Hops[len(t.Hops)-1]; last.Depth == 0 {
			first := slices.IndexFunc(t.Hops, func(h mirror.Hop) bool { return h.Switch == last.Switch })
			if h := &t.Hops[first]; h.Depth > 0 {
				s.RoundTrips++
				sums[t.Probe] += last.At - h.At
				s.Max = max(s.Max, last.At-h.At)
			}
		}
	}
	var out []Series
	for id, s := range at {
		s.Lost = s.Sent - s.Delivered
		if s.RoundTrips > 0 {
			s.Mean = sums[id] / frame.Time(s.RoundTrips)
		}
		slices.Sort(s.At)
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Series) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
