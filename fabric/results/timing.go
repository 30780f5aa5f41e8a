package results

import "encoding/json"

// Timing says how well a run on real frames kept time: a worker that comes
// late is another network. Times are those of the nodes, as everything else in
// Run; a second of theirs took Scale real seconds.
type Timing struct {
	Scale    float64  `json:"scale"`
	Valid    bool     `json:"valid"`
	Why      []string `json:"why,omitempty"`      // which bounds were exceeded, with the numbers
	Remedies []string `json:"remedies,omitempty"` // what would help
	BaseRTT  float64  `json:"base_rtt_seconds"`   // T
	Frame    float64  `json:"frame_seconds"`      // of a full frame on the fastest host link

	// Lateness: from the instant at which something was due (a frame on its
	// emulated link, a timer) to the loop that did it, of all workers.
	LateP50   float64 `json:"late_p50_seconds"`
	LateP99   float64 `json:"late_p99_seconds"`
	LateMax   float64 `json:"late_max_seconds"`
	OverFrame float64 `json:"late_over_frame_share"` // share of it above the time of one frame
	OverRTT   float64 `json:"late_over_rtt_share"`   // and above T
	Bound     float64 `json:"late_bound_seconds"`    // for LateP99 and TransitP99

	// Transit: from the loop that gave a frame to the kernel to the one in which
	// the far end of its cable received it. The emulated link takes that besides
	// its own delay, so it is late by as much. Samples of all links.
	TransitP50 float64 `json:"transit_p50_seconds"`
	TransitP99 float64 `json:"transit_p99_seconds"`
	TransitMax float64 `json:"transit_max_seconds"`

	// Where one worker steps all nodes, their clock stands while it is kept from
	// its processor, so that they do not notice: for how long, as a share of the
	// run in real time, and at once, in real seconds.
	StoppedShare float64 `json:"stopped_share"`
	StoppedMax   float64 `json:"stopped_max_real_seconds"`

	// Processes is how many there were, 0 where there was one. Then what waits for
	// something that another process sees, such as the next flow of a closed loop
	// for the arrival of the last, begins Reaction after it, in all processes at the
	// same instant, and this is how much later than due flows were posted.
	Processes int     `json:"processes,omitempty"`
	Reaction  float64 `json:"reaction_seconds,omitempty"`
	PostP50   float64 `json:"post_late_p50_seconds,omitempty"`
	PostP99   float64 `json:"post_late_p99_seconds,omitempty"`
	PostMax   float64 `json:"post_late_max_seconds,omitempty"`

	ClockRead float64  `json:"clock_read_seconds"` // real: what reading the clock costs
	RingDrops uint64   `json:"ring_drops_total"`   // frames lost in AF_XDP rings and devices
	Workers   []Worker `json:"workers"`
}

// Worker is a thread of a run on real frames.
type Worker struct {
	Name    string  `json:"name"`
	CPU     int     `json:"cpu"` // -1: not pinned
	Poll    string  `json:"poll"`
	Nodes   int     `json:"nodes"`
	Busy    float64 `json:"busy_share"`
	LateP50 float64 `json:"late_p50_seconds"`
	LateP99 float64 `json:"late_p99_seconds"`
	LateMax float64 `json:"late_max_seconds"`
}

// renamed are the names that keys of Timing had in the last version. They are written
// for one version more, and read where the new ones are missing.
type renamed struct {
	Advice     []string `json:"advice,omitempty"`       // remedies
	StoodShare float64  `json:"stood_share"`            // stopped_share
	StoodMax   float64  `json:"stood_max_real_seconds"` // stopped_max_real_seconds
}

// timing is a Timing without methods.
type timing Timing

// MarshalJSON implements json.Marshaler.
func (t Timing) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		timing
		renamed
	}{timing(t), renamed{t.Remedies, t.StoppedShare, t.StoppedMax}})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Timing) UnmarshalJSON(b []byte) error {
	var was renamed
	if err := json.Unmarshal(b, &was); err != nil {
		return err
	}
	*t = Timing{Remedies: was.Advice, StoppedShare: was.StoodShare, StoppedMax: was.StoodMax}
	return json.Unmarshal(b, (*timing)(t))
}
