package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gswitch/frame"
)

// section is a stream of three frames on two interfaces.
func section(t testing.TB) ([]byte, []Record, [][]byte) {
	t.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Section("a test"))
	for _, name := range []string{"left", "right"} {
		_, err := w.Interface(name, "", 2000)
		must(err)
	}
	recs := []Record{
		{Time: 1700000000123456789, Iface: 0, Wire: 60, Dir: DirIn},
		{Time: 1700000000123456790, Iface: 1, Wire: 1500, Dir: DirOut},
		{Time: 1700000001000000000, Iface: 0, Wire: 61, Dir: DirDrop, Reason: frame.QueueTail},
	}
	data := [][]byte{bytes.Repeat([]byte{1}, 60), bytes.Repeat([]byte{2}, 128), bytes.Repeat([]byte{3}, 61)}
	for i := range recs {
		must(w.Packet(recs[i], data[i]))
	}
	must(w.Statistics(0, 1700000002000000000, 3, 1))
	if err := w.Packet(Record{Iface: 2}, nil); err == nil {
		t.Error("a packet of an unknown interface was written")
	}
	must(w.Flush())
	return buf.Bytes(), recs, data
}

func TestPcapngReadsBack(t *testing.T) {
	file, recs, data := section(t)
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		rec, d, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if rec != recs[i] || !bytes.Equal(d, data[i]) {
			t.Errorf("frame %d is %+v with %d bytes, want %+v with %d", i, rec, len(d), recs[i], len(data[i]))
		}
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if n := r.Interfaces()[1].Name; n != "right" {
		t.Errorf("interface 1 is %q", n)
	}
	if n := r.Interfaces()[0].Lost; n != 1 {
		t.Errorf("the capture lost %d frames, it was 1", n)
	}
}

// Another implementation reads the same from our stream.
func TestPcapngAgainstTshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("needs tshark")
	}
	file, recs, data := section(t)
	name := filepath.Join(t.TempDir(), "section.pcapng")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", name, "-T", "fields", "-E", "separator=|", "-e", "frame.time_epoch", "-e", "frame.interface_name",
		"-e", "frame.len", "-e", "frame.cap_len", "-e", "frame.packet_flags_direction", "-e", "frame.comment").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(recs) {
		t.Fatalf("tshark reads %d frames, want %d:\n%s", len(lines), len(recs), out)
	}
	for i, r := range recs {
		got := strings.Split(lines[i], "|")
		direction, comment := "0x00000001", ""
		switch r.Dir {
		case DirOut:
			direction = "0x00000002"
		case DirDrop:
			comment = "drop: queue-tail"
		}
		want := []string{fmt.Sprintf("%d.%09d", r.Time/1e9, r.Time%1e9), []string{"left", "right"}[r.Iface],
			fmt.Sprint(r.Wire), fmt.Sprint(len(data[i])), direction, comment}
		if !slices.Equal(got, want) {
			t.Errorf("frame %d: tshark reads %q, want %q", i, got, want)
		}
	}
}

// Classic files of both resolutions and byte orders.
func TestClassicPcap(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for magic, want := range map[uint32]int64{0xa1b2c3d4: 5_000_007_000, 0xa1b23c4d: 5_000_000_007} {
			var b []byte
			b = order.AppendUint32(b, magic)
			b = order.AppendUint16(b, 2)
			b = order.AppendUint16(b, 4)
			for _, v := range []uint32{0, 0, 65535, LinkEthernet, 5, 7, 3, 60} {
				b = order.AppendUint32(b, v)
			}
			b = append(b, 9, 8, 7)
			r, err := NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			rec, d, err := r.Next()
			if err != nil || rec.Time != want || rec.Wire != 60 || !bytes.Equal(d, []byte{9, 8, 7}) {
				t.Errorf("%v %#x: %+v %v %v, want time %d", order, magic, rec, d, err, want)
			}
			if _, _, err := r.Next(); err != io.EOF {
				t.Errorf("%v %#x: at the end: %v", order, magic, err)
			}
			if r, err = NewReader(bytes.NewReader(b[:len(b)-1])); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Next(); err == nil || err == io.EOF {
				t.Errorf("%v %#x: a record cut off gives %v", order, magic, err)
			}
		}
	}
}

// Every prefix of a file is either whole up to a block or an error that is
// not io.EOF.
func TestPcapngCutOff(t *testing.T) {
	file, _, _ := section(t)
	for n := range file {
		r, err := NewReader(bytes.NewReader(file[:n]))
		for err == nil {
			_, _, err = r.Next()
		}
		if err == io.EOF && n%4 != 0 {
			t.Errorf("cut at %d: a clean end", n)
		}
	}
}

func FuzzReader(f *testing.F) {
	file, _, _ := section(f)
	f.Add(file)
	f.Add(file[:len(file)-7])
	classic := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	classic = append(classic, make([]byte, 40)...)
	f.Add(classic)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b))
		for err == nil {
			var rec Record
			var d []byte
			rec, d, err = r.Next()
			if err == nil && (int(rec.Iface) >= len(r.Interfaces()) && r.ng || len(d) > len(b) || int(rec.Wire) < len(d)) {
				t.Fatalf("%+v with %d bytes from a file of %d", rec, len(d), len(b))
			}
		}
	})
}

// The session writes what several workers captured in the order of time, and
// counts what found no room.
func TestSessionMergesTaps(t *testing.T) {
	a := frame.MustArena(64, 2048, 256)
	p := frame.NewPool(a)
	small := p.New(make([]byte, 60))
	var buf bytes.Buffer
	epoch := time.Unix(1700000000, 0)
	s, err := NewSession(&buf, []string{"p0", "p1"}, 2, Options{Epoch: epoch, Zero: func(iface uint32, _ int64) int64 { return epoch.UnixNano() + 1000*int64(iface) }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		s.Tap(i%2).Frames(frame.Time(i), a, uint32(i%2), DirIn, []frame.Ref{small})
	}
	s.Run()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		rec, _, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if rec.Time != epoch.UnixNano()+int64(i)+1000*int64(i%2) || rec.Iface != uint32(i%2) {
			t.Fatalf("frame %d is %+v", i, rec)
		}
	}
	if st := s.Stats(); st != (Stats{Captured: 100}) {
		t.Errorf("%+v", st)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write(b []byte) (int, error) { return 0, errors.New("disk full") }

func TestSessionOverflowAndError(t *testing.T) {
	a := frame.MustArena(64, 2048, 256)
	p := frame.NewPool(a)
	big := p.New(make([]byte, 1500))
	var buf bytes.Buffer
	s, err := NewSession(&buf, []string{"p0"}, 1, Options{SnapLen: 1500, RingBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	// There is no reader yet.
	for range 1000 {
		s.Tap(0).Frames(0, a, 0, DirIn, []frame.Ref{big})
	}
	st := s.Stats()
	if st.Dropped == 0 || st.Captured+st.Dropped != 1000 {
		t.Errorf("%+v, want some of 1000 dropped", st)
	}
	s.Run()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	broken, err := NewSession(brokenWriter{}, []string{"p0"}, 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	broken.Run()
	<-broken.Done()
	if broken.Close() == nil {
		t.Error("a writer's error is not reported")
	}
}
