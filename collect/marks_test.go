package collect

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gswitch/mirror"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// deciders are collectors that decide about marks: each takes 500,000 copies a second and gets 450,000.
func deciders(t *testing.T, ids ...string) (*hub, *Metrics) {
	h := openHub(t, t.TempDir(), 16<<20)
	m := NewMetrics(prometheus.NewRegistry())
	h.store.patience = time.Hour
	for _, id := range ids {
		if _, err := h.store.lanes.Put(t.Context(), "collector."+id, nil); err != nil {
			t.Fatal(err)
		}
		take := func() mirror.Budget {
			return mirror.Budget{Capacity: mirror.Rate{Copies: 500_000}, Others: mirror.Rate{Copies: 450_000}}
		}
		if _, err := h.store.subscribe(t.Context(), loadSubject, "", load(take)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.store.subscribe(t.Context(), marksSubject, marksGroup, h.store.decider(m)); err != nil {
			t.Fatal(err)
		}
	}
	return h, m
}

// allow asks for marks, and says of their copies what is not so.
func allow(name string, copies int) *MarksRequest {
	return &MarksRequest{Allow: &Marks{Name: name, Hosts: []string{"h1"}, Each: copies, Switches: 1, Bytes: 242, Rate: mirror.Rate{Copies: 1}}}
}

// Marks share what all collectors take, by what comes and what was allowed; what ends is given
// back, what is refused changes nothing and is counted.
func TestMarks(t *testing.T) {
	h, m := deciders(t, "a", "b")
	for i, c := range []struct {
		r       *MarksRequest
		granted uint64
		refused string
	}{
		{allow("web", 200_000), 0, "200000 copies a second are too many: 900000 of 1000000 are in use"},
		{allow("web", 50_000), 50_000, ""},
		{allow("web", 10), 50_000, "there are marks \"web\" already"},
		{allow("db", 50_001), 50_000, "950000 of 1000000 are in use"},
		{allow("db", 50_000), 100_000, ""},
		{allow("more", 1), 100_000, "1000000 of 1000000"},
		{allow("", 1), 100_000, "need a name"},
		{allow("none", 0), 100_000, "0 marks a second: between 1 and"},
		{&MarksRequest{End: "web"}, 50_000, ""},
		{&MarksRequest{End: "web"}, 50_000, "no marks \"web\""},
		{allow("more", 50_000), 100_000, ""},
		{allow(strings.Repeat("n", mostWords+1), 1), 100_000, "names of more than"},
	} {
		st, err := h.store.AskMarks(t.Context(), c.r)
		if err != nil {
			t.Fatal(err)
		}
		if st.Refused == "" && c.refused != "" || !strings.Contains(st.Refused, c.refused) || st.Budget.Granted.Copies != c.granted {
			t.Errorf("%d: %q, granted %d; want %q, %d", i, st.Refused, st.Budget.Granted.Copies, c.refused, c.granted)
		}
	}
	if n := testutil.ToFloat64(m.refused.WithLabelValues("marks")); n != 8 {
		t.Errorf("%v are counted as refused, want 8", n)
	}
	msg, err := h.store.nc.Request(marksSubject, []byte("{"), time.Hour)
	if err != nil || !strings.Contains(string(msg.Data), "no request about marks") {
		t.Errorf("what is no request: %v, %v", msg, err)
	}
}

// Marks that were allowed for a time end by themselves; a request for the same again in time extends
// them by as long. Others go on until they are ended.
func TestMarksExpire(t *testing.T) {
	h, _ := deciders(t, "a")
	ask := func(r *MarksRequest) *MarksState {
		st, err := h.store.AskMarks(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	for name, lasts := range map[string]time.Duration{"short": time.Hour, "long": 2 * time.Hour, "always": 0} {
		r := allow(name, 10_000)
		r.Allow.For = lasts
		if st := ask(r); st.Refused != "" {
			t.Fatal(st.Refused)
		}
	}
	pass := func(by time.Duration) { // as if it had been that much earlier
		if err := amend(t.Context(), h.store, marksKey, func(v *[]Marks) (bool, error) {
			for i := range *v {
				m := &(*v)[i]
				if m.Since = m.Since.Add(-by); !m.Until.IsZero() {
					m.Until = m.Until.Add(-by)
				}
			}
			return true, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(when string, names ...string) {
		t.Helper()
		var got []string
		st := ask(&MarksRequest{})
		for _, m := range st.Marks {
			got = append(got, m.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, names) || st.Budget.Granted.Copies != uint64(len(names))*10_000 {
			t.Errorf("%s: %v are allowed, %d copies a second; want %v", when, got, st.Budget.Granted.Copies, names)
		}
	}
	pass(59 * time.Minute)
	holds("after 59 minutes", "always", "long", "short")
	again := allow("short", 10_000)
	again.Allow.For = time.Hour
	if st := ask(again); st.Refused != "" {
		t.Error(st.Refused)
	}
	pass(59 * time.Minute)
	holds("who asked again", "always", "long", "short")
	pass(5 * time.Minute)
	holds("after two hours", "always")
	if st := ask(allow("more", 30_000)); st.Refused != "" {
		t.Error("what ended is not given back: ", st.Refused)
	}
}

// Of many that ask at once no more are allowed than there is room for.
func TestMarksAtOnce(t *testing.T) {
	h, m := deciders(t, "a", "b", "c")
	const asking, room = 9, 5 // of 30,000 each in 150,000
	var all sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for i := range asking {
		all.Go(func() {
			st, err := h.store.AskMarks(t.Context(), allow(fmt.Sprint("m", i), 30_000))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if st.Refused == "" {
				allowed++
			}
		})
	}
	all.Wait()
	st, err := h.store.AskMarks(t.Context(), &MarksRequest{})
	if err != nil || allowed != room || len(st.Marks) != room || st.Budget.Granted.Copies != room*30_000 {
		t.Errorf("%d allowed, %v, %v; want %d", allowed, st, err, room)
	}
	if n := testutil.ToFloat64(m.refused.WithLabelValues("marks")); n != asking-room {
		t.Errorf("%v are counted as refused, want %d", n, asking-room)
	}
}

// Copies of packets with the debug bit are distinguished from others.
func TestLoadOfCopies(t *testing.T) {
	c := &Copies{Metrics: NewMetrics(prometheus.NewRegistry())}
	s := mirror.Session{ID: 1, Src: netip.MustParseAddr("10.10.0.1"), Dst: netip.MustParseAddr("10.9.0.1")}
	b := make([]byte, 512)
	bytes := [2]uint64{}
	for i, tos := range []uint8{mirror.DebugDSCP << 2, 0, 2 << 2} {
		packet := wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(tos)), wt.UDP(1, 2))
		n, _ := s.Copy(b, packet, uint32(len(packet)), mirror.Info{})
		for range 10 {
			c.count(1000, b[:n])
		}
		bytes[min(i, 1)] += uint64(n - wire.EthernetLen)
	}
	if marked, others := c.marked.Mean(1001), c.others.Mean(1001); marked != (mirror.Rate{Copies: 1, Bytes: bytes[0]}) || others != (mirror.Rate{Copies: 2, Bytes: bytes[1]}) {
		t.Errorf("marked %v, others %v", marked, others)
	}
	c.count(1000, make([]byte, wire.EthernetLen))
	if c.others.Mean(1001).Copies != 2 { // 21 in ten seconds
		t.Error("what is no copy")
	}
}
