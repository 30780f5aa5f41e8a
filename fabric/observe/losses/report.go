package losses

import "gswitch/fabric/results"

// Found is what a run has of losses, by link and cause.
var Found = results.NewPart[[]Loss]("losses")

// Loss is what a link lost for one cause, as meters at its ends and a collector
// found out.
type Loss struct {
	Link     string   `json:"link"` // such as s1>s2
	Cause    string   `json:"cause"`
	Frames   uint64   `json:"frames"`
	Sent     uint64   `json:"sent"` // frames that entered the link, for whatever became of them
	Flows    int      `json:"flows"`
	First    float64  `json:"first"` // seconds
	Last     float64  `json:"last"`
	Examples []string `json:"examples"` // some of the flows
}
