package flows

import (
	"cmp"
	"slices"

	"gswitch/fabric/results"
)

// Reported is the report of a run.
var Reported = results.NewPart[*Report]("flows")

// Report is what switches counted of flows, slot by slot, and what it shows, as it stands in
// results.json.
type Report struct {
	Findings []ReportFinding `json:"findings,omitempty"`
	Links    []ReportLink    `json:"links,omitempty"`
}

// ReportFinding is something that the slots of a network show of a flow.
type ReportFinding struct {
	Kind    string   `json:"kind"` // loss, blackhole or loop
	Flow    string   `json:"flow"`
	At      string   `json:"at"`                // a link, such as s1>s2, or the switch whose tables drop it
	From    float64  `json:"from"`              // seconds: the beginning of the first slot that shows it
	Seen    float64  `json:"seen"`              // when that was known
	Moved   float64  `json:"moved,omitempty"`   // when a controller moved the flow
	Packets int64    `json:"packets"`           // that were lost by then; in a loop, that circulated
	Entered int64    `json:"entered,omitempty"` // that came to the loop
	Cycle   []string `json:"cycle,omitempty"`   // the switches of a loop
}

// ReportLink lists the flows that used one direction of a link.
type ReportLink struct {
	Link  string       `json:"link"`
	Flows int          `json:"flows"`
	Bytes uint64       `json:"bytes"`
	Top   []ReportUser `json:"top"` // those with the most bytes
}

// ReportUser is what a flow sent by a link.
type ReportUser struct {
	Flow    string  `json:"flow"`
	Packets uint64  `json:"packets"`
	Bytes   uint64  `json:"bytes"`
	Slots   int     `json:"slots"` // in which it sent
	Peak    float64 `json:"peak"`  // most bit/s of a slot
	PeakAt  float64 `json:"peak_at"`
}

// topUsers is how many flows of a link are listed.
const topUsers = 10

// Report is what there is to show.
func (b *Book) Report() *Report {
	out := &Report{}
	for i := range b.found {
		f := &b.found[i]
		x := ReportFinding{Kind: f.Kind.String(), Flow: f.Flow.String(), At: b.place(&f.Finding), From: f.From.Seconds(), Seen: f.Seen.Seconds(), Moved: f.Moved.Seconds(), Packets: f.Packets, Entered: f.Entered}
		for _, sw := range f.Cycle {
			x.Cycle = append(x.Cycle, b.name(sw))
		}
		out.Findings = append(out.Findings, x)
	}
	for _, l := range b.links {
		if l.bytes == 0 {
			continue
		}
		slices.SortFunc(l.order, func(x, y *user) int {
			return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.flow.Addrs, y.flow.Addrs), cmp.Compare(x.flow.Rest, y.flow.Rest))
		})
		x := ReportLink{Link: l.name, Flows: len(l.order), Bytes: l.bytes}
		for _, u := range l.order[:min(topUsers, len(l.order))] {
			x.Top = append(x.Top, ReportUser{Flow: u.flow.String(), Packets: u.packets, Bytes: u.bytes, Slots: u.slots, Peak: 8 * u.peak, PeakAt: u.peakAt.Seconds()})
		}
		out.Links = append(out.Links, x)
	}
	slices.SortStableFunc(out.Links, func(a, b ReportLink) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}
