package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gswitch/mirror"
)

// Marks is a permission for hosts to mark packets with the debug bit (Everflow's
// EnableDbg). It is revoked by its name.
type Marks struct {
	Name  string   `json:"name"`
	Hosts []string `json:"hosts"`
	Each  int      `json:"each"` // marks per second and host: the key most of the host's document
	// Switches is the number of switches that copy a packet, with Bytes each.
	Switches int         `json:"switches"`
	Bytes    int         `json:"bytes"`
	Rate     mirror.Rate `json:"rate"`  // largest rate of copies that these may cause, as the collector receives it
	Since    time.Time   `json:"since"` // UTC
	// For is how long they are allowed, 0: until revoked.
	For   time.Duration `json:"for_ns,omitempty"`
	Until time.Time     `json:"until,omitzero"` // UTC
}

// over reports whether the permission has expired.
func (m Marks) over(now time.Time) bool { return !m.Until.IsZero() && !now.Before(m.Until) }

// from starts the permission at an instant.
func (m *Marks) from(now time.Time) {
	if m.Until = (time.Time{}); m.For > 0 {
		m.Until = now.Add(m.For)
	}
}

// MarksRequest is a request to a collector: the permission to add, the name of the one to
// revoke or, with neither, a query.
type MarksRequest struct {
	Allow *Marks `json:"allow,omitempty"`
	End   string `json:"end,omitempty"`
}

// MarksState lists the permissions and the budget of the network.
type MarksState struct {
	Marks  []Marks       `json:"marks"`
	Budget mirror.Budget `json:"budget"`
	// Refused says why a request was refused. Nothing has changed then.
	Refused string `json:"refused,omitempty"`
}

const (
	marksSubject = "gswitch.marks"
	loadSubject  = "gswitch.load"
	marksGroup   = "marks" // queue group of the collectors
	marksKey     = "marks" // in the bucket of lanes
	// mostAllowed is the largest number of permissions at once, mostWords the size of
	// their names and hosts in bytes.
	mostAllowed = 256
	mostWords   = 1 << 11
)

// AnswerLoad answers queries for the budget and load of this collector, until ctx ends.
func (s *Store) AnswerLoad(ctx context.Context, take func() mirror.Budget) error {
	return s.answer(ctx, loadSubject, "", load(take))
}

func load(take func() mirror.Budget) func(context.Context, []byte) any {
	return func(context.Context, []byte) any { return take() }
}

// AnswerMarks decides requests for marks until ctx ends. Each request is handled by one
// of the running collectors. Refusals are counted.
func (s *Store) AnswerMarks(ctx context.Context, m *Metrics) error {
	return s.answer(ctx, marksSubject, marksGroup, s.decider(m))
}

func (s *Store) decider(m *Metrics) func(context.Context, []byte) any {
	return decided(m, "marks", s.decide)
}

func (st *MarksState) refused() *string { return &st.Refused }

// AskMarks sends a request for marks to the running collectors. Repeating a request only
// extends the permission.
func (s *Store) AskMarks(ctx context.Context, r *MarksRequest) (*MarksState, error) {
	return ask[MarksState](ctx, s, marksSubject, r)
}

// decide carries out a request. Of two concurrent requests, the second is decided on the
// result of the first.
func (s *Store) decide(ctx context.Context, r *MarksRequest) (st *MarksState, err error) {
	if r.Allow != nil && r.End != "" {
		return nil, errors.New("marks are allowed or ended: ask for one at a time")
	}
	err = amend(ctx, s, marksKey, func(marks *[]Marks) (changed bool, err error) {
		now := time.Now().UTC()
		st = &MarksState{Marks: slices.DeleteFunc(*marks, func(m Marks) bool { return m.over(now) })}
		for _, m := range st.Marks {
			st.Budget.Granted = st.Budget.Granted.Plus(m.Rate)
		}
		loads, err := askAll[mirror.Budget](ctx, s, loadSubject)
		if err != nil {
			return false, err
		}
		for _, l := range loads {
			b := &st.Budget
			b.Capacity, b.Others, b.Marked = b.Capacity.Plus(l.Capacity), b.Others.Plus(l.Others), b.Marked.Plus(l.Marked)
		}
		if r.Allow == nil && r.End == "" {
			return false, nil
		}
		if err := st.change(r, now); err != nil {
			st.Refused = err.Error()
			return false, nil
		}
		*marks = st.Marks
		return true, nil
	})
	return st, err
}

// same reports whether a permission equals the requested one except for its duration: the
// request is repeated because no answer arrived, or to extend it.
func (m *Marks) same(o Marks) bool {
	return m.Name == o.Name && slices.Equal(m.Hosts, o.Hosts) && m.Each == o.Each && m.Switches == o.Switches && m.Bytes == o.Bytes
}

// change adds or revokes permissions, or says why not.
func (st *MarksState) change(r *MarksRequest, now time.Time) error {
	name := r.End
	if r.Allow != nil {
		name = r.Allow.Name
	}
	at := -1
	for i := range st.Marks {
		if st.Marks[i].Name == name {
			at = i
		}
	}
	switch {
	case r.Allow == nil && at < 0:
		return fmt.Errorf("there are no marks %q", name)
	case r.Allow == nil:
		st.Budget.Granted = mirror.Rate{}
		st.Marks = append(st.Marks[:at], st.Marks[at+1:]...)
		for _, m := range st.Marks {
			st.Budget.Granted = st.Budget.Granted.Plus(m.Rate)
		}
		return nil
	case r.Allow.For < 0:
		return fmt.Errorf("marks for %v: they last some time, or until they end (0)", r.Allow.For)
	case at >= 0 && r.Allow.same(st.Marks[at]):
		st.Marks[at].For = r.Allow.For
		st.Marks[at].from(now)
		return nil
	case name == "":
		return errors.New("marks need a name, by which they end")
	case at >= 0:
		return fmt.Errorf("there are marks %q already: end them first", name)
	case len(st.Marks) >= mostAllowed:
		return fmt.Errorf("%d marks are allowed at once: end some first", mostAllowed)
	case len(name)+len(strings.Join(r.Allow.Hosts, ",")) > mostWords:
		return fmt.Errorf("names of more than %d bytes", mostWords)
	}
	m := *r.Allow
	var err error
	if m.Rate, err = mirror.Marks(len(m.Hosts), m.Each, m.Switches, m.Bytes); err != nil {
		return err
	}
	if err := st.Budget.Admit(m.Rate); err != nil {
		return err
	}
	m.Since = now
	m.from(now)
	st.Marks = append(st.Marks, m)
	st.Budget.Granted = st.Budget.Granted.Plus(m.Rate)
	return nil
}
