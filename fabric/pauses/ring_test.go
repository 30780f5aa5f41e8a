package pauses

import (
	"bytes"
	"strings"
	"testing"
)

// Three switches each of which holds back the one before it, for frames for
// the one after it.
func ring(until float64) []Pause {
	v := []Pause{pause("s2", "s1", 0.001, until, "s3"), pause("s3", "s2", 0.0011, until, "s1"), pause("s1", "s3", 0.0012, until, "s2")}
	for i := range v {
		v[i].Lasts = true
	}
	return append(v, pause("s1", "h1", 0.002, until, "s2"))
}

func TestTraceNamesTheCircle(t *testing.T) {
	tr := New(ring(0.01), 0, 0.01, 0, 0)
	if len(tr.Circles) != 1 || !tr.Circles[0].Deadlock || len(tr.Circles[0].Ports) != 3 {
		t.Fatalf("%+v", tr.Circles)
	}
	var out bytes.Buffer
	if err := tr.Text(&out, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DEADLOCK, class 3: ", "s1>s2", "s2>s3", "s3>s1", "wait for each other in a circle", "part of the circle"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}

	// Looked at early it may still end; a pause that is over, or one for
	// another port, closes no circle.
	if tr = New(ring(0.0013), 0, 0.0013, 0, 0); len(tr.Circles) != 1 || tr.Circles[0].Deadlock {
		t.Errorf("after 100 us: %+v", tr.Circles)
	}
	v := ring(0.01)
	v[1].Lasts = false
	if tr = New(v, 0, 0.01, 0, 0); len(tr.Circles) != 0 {
		t.Errorf("a pause is over: %+v", tr.Circles)
	}
	v = ring(0.01)
	v[2].Causes[0].Port = end("s1", "h1")
	if tr = New(v, 0, 0.01, 0, 0); len(tr.Circles) != 0 {
		t.Errorf("s1 waits for its host: %+v", tr.Circles)
	}
}
