package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gswitch/mirror"
)

// Marks are what hosts were allowed to mark with the debug bit (Everflow's EnableDbg), under a
// name that ends it.
type Marks struct {
	Name  string   `json:"name"`
	Hosts []string `json:"hosts"`
	Each  int      `json:"each"` // marks of a host in a second: most in its document
	// Switches is how many switches copy a packet, with so many Bytes each.
	Switches int         `json:"switches"`
	Bytes    int         `json:"bytes"`
	Rate     mirror.Rate `json:"rate"`  // the copies that these may lead to, as the collector has it
	Since    time.Time   `json:"since"` // UTC
}

// MarksRequest is what a collector is asked for: marks that are to be allowed, the name of
// those that end, or, with neither, what there is.
type MarksRequest struct {
	Allow *Marks `json:"allow,omitempty"`
	End   string `json:"end,omitempty"`
}

// MarksState is what is allowed, and the budget of the network.
type MarksState struct {
	Marks  []Marks       `json:"marks"`
	Budget mirror.Budget `json:"budget"`
	// Refused says why what was asked for was refused; then nothing has changed.
	Refused string `json:"refused,omitempty"`
}

const (
	marksSubject = "gswitch.marks"
	loadSubject  = "gswitch.load"
	marksGroup   = "marks" // of those who decide
	marksKey     = "marks" // in the bucket of lanes
	// mostAllowed is how many marks are allowed at once, mostWords how many bytes their
	// names and hosts have.
	mostAllowed = 256
	mostWords   = 1 << 11
	// attempts is how often a change is tried that others come before.
	attempts = 16
)

// AnswerLoad says of one collector what it takes, and what comes, until ctx ends.
func (s *Store) AnswerLoad(ctx context.Context, take func() mirror.Budget) error {
	return s.answer(ctx, loadSubject, "", load(take))
}

func load(take func() mirror.Budget) func(context.Context, []byte) any {
	return func(context.Context, []byte) any { return take() }
}

// AnswerMarks decides about marks, one collector of those that run for each request, until ctx
// ends. It counts what is refused.
func (s *Store) AnswerMarks(ctx context.Context, m *Metrics) error {
	return s.answer(ctx, marksSubject, marksGroup, s.decider(m))
}

func (s *Store) decider(m *Metrics) func(context.Context, []byte) any {
	return func(ctx context.Context, text []byte) any {
		var r MarksRequest
		st, err := (*MarksState)(nil), json.Unmarshal(text, &r)
		if err != nil {
			err = fmt.Errorf("it is no request about marks: %w", err)
		} else {
			st, err = s.decide(ctx, &r)
		}
		if err != nil {
			st = &MarksState{Refused: err.Error()}
		}
		if st.Refused != "" {
			m.refused.WithLabelValues("marks").Inc()
		}
		return st
	}
}

// AskMarks asks the collectors that run about marks.
func (s *Store) AskMarks(ctx context.Context, r *MarksRequest) (*MarksState, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*s.patience)
	defer cancel()
	m, err := s.nc.RequestWithContext(ctx, marksSubject, text)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, errors.New("no collector runs that could decide: start gcollect run")
	}
	if err != nil {
		return nil, fmt.Errorf("no collector answered in time, and one may have allowed it nevertheless (gcollect marks show): %w", err)
	}
	st := &MarksState{}
	if err := json.Unmarshal(m.Data, st); err != nil {
		return nil, fmt.Errorf("what a collector says of marks: %w", err)
	}
	return st, nil
}

// decide carries out a request. Of two that come at once the second one is decided by what the
// first one left.
func (s *Store) decide(ctx context.Context, r *MarksRequest) (*MarksState, error) {
	for range attempts {
		st, revision, err := s.marks(ctx)
		if err != nil {
			return nil, err
		}
		loads, err := askAll[mirror.Budget](ctx, s, loadSubject)
		if err != nil {
			return nil, err
		}
		for _, l := range loads {
			b := &st.Budget
			b.Capacity, b.Others, b.Marked = b.Capacity.Plus(l.Capacity), b.Others.Plus(l.Others), b.Marked.Plus(l.Marked)
		}
		if r.Allow == nil && r.End == "" {
			return st, nil
		}
		if err := st.change(r); err != nil {
			st.Refused = err.Error()
			return st, nil
		}
		text, err := json.Marshal(st.Marks)
		if err != nil {
			return nil, err
		}
		if revision == 0 {
			_, err = s.lanes.Create(ctx, marksKey, text)
		} else {
			_, err = s.lanes.Update(ctx, marksKey, text, revision)
		}
		if !taken(err) && !errors.Is(err, jetstream.ErrKeyExists) {
			return st, err
		}
	}
	return nil, errors.New("others change marks all the time: ask again")
}

// marks reads what is allowed.
func (s *Store) marks(ctx context.Context) (st *MarksState, revision uint64, err error) {
	st = &MarksState{}
	e, err := s.lanes.Get(ctx, marksKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return st, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(e.Value(), &st.Marks); err != nil {
		return nil, 0, fmt.Errorf("what is kept of marks: %w", err)
	}
	for _, m := range st.Marks {
		st.Budget.Granted = st.Budget.Granted.Plus(m.Rate)
	}
	return st, e.Revision(), nil
}

// change allows marks or ends them, or says why not.
func (st *MarksState) change(r *MarksRequest) error {
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
	m.Since = time.Now().UTC()
	st.Marks = append(st.Marks, m)
	st.Budget.Granted = st.Budget.Granted.Plus(m.Rate)
	return nil
}
