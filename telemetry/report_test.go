package telemetry_test

import (
	"bytes"
	"errors"
	"testing"

	"gswitch/telemetry"
)

var reports = []telemetry.Report{
	{Kind: "flowradar", Node: 7, Boot: 1 << 60, Sequence: 1, Body: []byte("abc")},
	{Kind: "lossradar", Node: 65535, Boot: 1, Sequence: 1 << 40},
}

// Reports one after the other are read as they were written; one that is cut off
// anywhere is told from one that is wrong.
func TestReports(t *testing.T) {
	var b []byte
	for i := range reports {
		b = reports[i].Append(b)
	}
	whole := b
	for i, want := range reports {
		r, n, err := telemetry.ParseReport(b)
		if err != nil || r.Kind != want.Kind || r.Node != want.Node || r.Boot != want.Boot || r.Sequence != want.Sequence || !bytes.Equal(r.Body, want.Body) {
			t.Fatalf("report %d: %+v, %v", i, r, err)
		}
		for cut := range n {
			if _, _, err := telemetry.ParseReport(b[:cut]); !errors.Is(err, telemetry.ErrShort) {
				t.Fatalf("%d of %d bytes: %v", cut, n, err)
			}
		}
		b = b[n:]
	}
	if len(b) != 0 {
		t.Errorf("%d bytes are left", len(b))
	}
	for _, at := range []int{0, 2, 22} {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x80
		if _, _, err := telemetry.ParseReport(bad); !errors.Is(err, telemetry.ErrReport) {
			t.Errorf("byte %d changed: %v", at, err)
		}
	}
}

// What is read is what is written again.
func FuzzReport(f *testing.F) {
	for i := range reports {
		f.Add(reports[i].Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, n, err := telemetry.ParseReport(b)
		if err == nil && !bytes.Equal(r.Append(nil), b[:n]) {
			t.Errorf("%x is written as %x", b[:n], r.Append(nil))
		}
	})
}

// A node that gets another outbox loses nothing that it published before.
func TestDesk(t *testing.T) {
	var d telemetry.Desk[int]
	if r, _ := d.Take(); r != nil {
		t.Fatal("a report without an outbox")
	}
	one, two := 1, 2
	first, second := telemetry.NewOutbox(&one), telemetry.NewOutbox(&two)
	d.Put(first)
	d.Take()
	first.Publish(first.Empty())
	d.Put(second)
	second.Publish(second.Empty())
	for _, want := range []int{1, 2} {
		r, o := d.Take()
		if r == nil || *r != want {
			t.Fatalf("%v, want %d", r, want)
		}
		o.Return(r)
	}
	if r, _ := d.Take(); r != nil || first.Empty() != &one || second.Empty() != &two {
		t.Error("the reports did not go back")
	}
}
