package lossradar

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func sample() *Report {
	r := generator(3)
	rep := &Report{Meter: Meter{Node: 3, Port: 7, Class: 3, Shard: 1, Down: true, Of: 12}, Batch: 1234567, From: 5, To: 10 * ms, Amends: true, Merged: 2, Missed: 9,
		Digest: NewDigest(Shape{Cells: 12, Hashes: 3, Seed: 77})}
	for range 5 {
		rep.Insert(random(r))
	}
	return rep
}

func TestReportKeepsWhatItSays(t *testing.T) {
	want := sample()
	b := want.Append(nil)
	if len(b) != headerBytes+12*cellWire {
		t.Errorf("%d bytes", len(b))
	}
	got, err := Parse(b, 100)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	if _, err := Parse(b, 11); !errors.Is(err, ErrReport) {
		t.Errorf("more cells than are taken: %v", err)
	}
	for n := range b {
		if _, err := Parse(b[:n], 100); !errors.Is(err, ErrReport) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
}

// Counts wrap in a report, differences do not.
func TestCountsMayWrap(t *testing.T) {
	r := generator(4)
	shape := Shape{Cells: 30, Hashes: 3, Seed: 1}
	up, down := &Report{Digest: NewDigest(shape)}, &Report{Digest: NewDigest(shape)}
	var lost Signature
	for i := range 700_000 {
		s := random(r)
		up.Insert(s)
		if i == 1000 {
			lost = s
			continue
		}
		down.Insert(s)
	}
	a, err1 := Parse(up.Append(nil), 100)
	b, err2 := Parse(down.Append(nil), 100)
	if err := errors.Join(err1, err2, a.Subtract(b.Digest)); err != nil {
		t.Fatal(err)
	}
	if out := a.Decode(); !out.Complete() || len(out.Lost) != 1 || out.Lost[0] != lost || out.Net != 1 {
		t.Errorf("%+v", out)
	}
}

// A damaged report, in which a packet stands in one of its three cells only: it is not
// said to be lost, and decoding ends.
func TestDecodingEnds(t *testing.T) {
	d := NewDigest(Shape{Cells: 30, Hashes: 3})
	s := random(generator(5))
	var at [MaxHashes]uint32
	d.cells[d.places(s, &at)[0]].fold(s, 1)
	if out := d.Decode(); out.Residual != 1 || len(out.Lost)+len(out.Extra) != 0 {
		t.Errorf("%d lost, %d extra, residual %d", len(out.Lost), len(out.Extra), out.Residual)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample().Append(nil))
	f.Add([]byte("LR"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b, 1000)
		if err != nil {
			if !errors.Is(err, ErrReport) {
				t.Fatal(err)
			}
			return
		}
		again, err := Parse(r.Append(nil), 1000)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%v: %+v becomes %+v", err, r, again)
		}
		if !bytes.Equal(r.Append(nil), again.Append(nil)) {
			t.Fatal("encoding is not stable")
		}
		r.Digest.Decode() // ends, whatever the cells say
	})
}
