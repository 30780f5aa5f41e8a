package telemetry_test

import (
	"testing"

	"gswitch/telemetry"
)

// Every report comes out once, in order, with what was written to it, while both
// sides run.
func TestOutbox(t *testing.T) {
	type report struct{ n, squared int }
	o := telemetry.NewOutbox(new(report), new(report), new(report))
	const total = 100_000
	done := make(chan int)
	go func() {
		sum := 0
		for want := 0; want < total; {
			r := o.Take()
			if r == nil {
				continue
			}
			if r.n != want || r.squared != want*want {
				t.Errorf("report %d: %+v", want, *r)
				break
			}
			sum += r.n
			want++
			*r = report{}
			o.Return(r)
		}
		done <- sum
	}()
	for n := 0; n < total; {
		if r := o.Empty(); r != nil {
			if *r != (report{}) {
				t.Errorf("an empty report holds %+v", *r)
			}
			*r = report{n, n * n}
			o.Publish(r)
			n++
		}
	}
	if sum := <-done; sum != total*(total-1)/2 {
		t.Errorf("the reports add up to %d", sum)
	}
}

// The exporter has all reports: the node is notified.
func TestOutboxIsBounded(t *testing.T) {
	o := telemetry.NewOutbox(new(int))
	r := o.Empty()
	if r == nil || o.Empty() != nil || o.Take() != nil {
		t.Fatal("one report was made")
	}
	o.Publish(r)
	if o.Empty() != nil || o.Take() != r || o.Take() != nil {
		t.Fatal("one report was published")
	}
	o.Return(r)
	if o.Empty() != r {
		t.Fatal("one report was returned")
	}
}
