package telemetry_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"gswitch/telemetry"
)

var reports = []telemetry.Report{
	{Kind: "flowradar", Node: 7, Boot: 1 << 60, Sequence: 1, Body: []byte("abc")},
	{Kind: "lossradar", Node: 65535, Boot: 1, Sequence: 1 << 40},
}

// Reports one after the other are read as they were written; one that is cut off
// anywhere is distinguished from one that is wrong.
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

// A reader gives the same reports, leaves out those that are too large, and distinguishes an
// end between two reports from one within.
func TestReadReport(t *testing.T) {
	var b []byte
	sizes := []int{0, 3, 5000, 40}
	for i, n := range sizes {
		b = (&telemetry.Report{Kind: "test", Boot: 9, Sequence: uint64(i + 1), Body: make([]byte, n)}).Append(b)
	}
	r := bufio.NewReader(bytes.NewReader(b))
	for i, n := range sizes {
		rep, err := telemetry.ReadReport(r, 1000)
		if large := n > 1000; errors.Is(err, telemetry.ErrLarge) != large || !large && (err != nil || len(rep.Body) != n) || rep.Sequence != uint64(i+1) || rep.Boot != 9 {
			t.Errorf("report %d: %+v, %v", i+1, rep, err)
		}
	}
	if _, err := telemetry.ReadReport(r, 1000); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	for _, cut := range []int{1, 20, 30, 100, len(b) - 1} {
		r := bufio.NewReader(bytes.NewReader(b[:cut]))
		var err error
		for err == nil || errors.Is(err, telemetry.ErrLarge) && !errors.Is(err, io.EOF) {
			_, err = telemetry.ReadReport(r, 1000)
		}
		if whole := cut == 30; (err == io.EOF) != whole {
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
	}
}
