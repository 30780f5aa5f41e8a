package traces

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gswitch/capture/capturetest"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// site is a network of two spines and three leaves with two hosts each, and copies
// that its switches make.
type site struct {
	t      *testing.T
	plan   *fabric.Plan
	copies [][]byte
	at     []frame.Time
	number map[string]*mirror.Session
}

func newSite(t *testing.T) *site {
	top, err := fabric.Load("leaf-spine:2,3,2", fabric.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := fabric.NewPlan(top)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, plan: plan, number: map[string]*mirror.Session{}}
}

func (s *site) node(name string) *fabric.NodePlan {
	i, ok := s.plan.Topology.Lookup(name)
	if !ok {
		s.t.Fatalf("there is no %s", name)
	}
	return &s.plan.Nodes[i]
}

// sees has a switch copy a packet from h1 to an address, that came from a node.
func (s *site) sees(at frame.Time, sw, from string, ttl uint8, id uint16, dst string, why frame.Reason) {
	mac := wire.MAC(s.node(from).MAC)
	if s.node(from).Loopback != nil {
		mac[5] = 3 // that of a port
	}
	p := wt.Frame(wt.Eth(wt.MAC(1), mac), wt.IPv4("10.0.0.2", dst, wt.TTL(ttl), wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = id })), wt.TCP(wire.TCPFields{SrcPort: 1000, DstPort: 80, Flags: wire.TCPSyn}))
	s.copy(at, sw, p, mirror.Info{At: at, Port: 1, Reason: why})
}

func (s *site) copy(at frame.Time, sw string, original []byte, i mirror.Info) {
	c := s.number[sw]
	if c == nil {
		c = &mirror.Session{ID: 1, Src: s.node(sw).Loopback[0], Dst: netip.MustParseAddr("10.0.2.3")}
		s.number[sw] = c
	}
	b := make([]byte, 400)
	n, _ := c.Copy(b, original, uint32(len(original)), i)
	s.copies, s.at = append(s.copies, b[:n]), append(s.at, at)
}

func (s *site) book() *Book {
	b := New(s.plan)
	for i, c := range s.copies {
		if !b.Add(s.at[i], c) {
			s.t.Fatalf("copy %d is none", i)
		}
	}
	b.Finish(s.at[len(s.at)-1] + 3*frame.Second)
	return b
}

const h3 = "10.0.1.2" // behind leaf2

func TestVerdicts(t *testing.T) {
	s := newSite(t)
	whole := func(at frame.Time, id uint16) {
		s.sees(at, "leaf1", "h1", 64, id, h3, 0)
		s.sees(at+2, "spine1", "leaf1", 63, id, h3, 0)
		s.sees(at+7, "leaf2", "spine1", 62, id, h3, 0)
	}
	whole(100, 1)
	s.sees(200, "leaf1", "h1", 64, 2, h3, 0) // lost behind leaf1
	s.sees(300, "leaf1", "h1", 64, 3, h3, 0) // lost behind a spine
	s.sees(302, "spine2", "leaf1", 63, 3, h3, 0)
	s.sees(400, "leaf1", "h1", 64, 4, h3, 0) // dropped by leaf2
	s.sees(402, "spine1", "leaf1", 63, 4, h3, 0)
	s.sees(404, "leaf2", "spine1", 62, 4, h3, 0)
	s.sees(405, "leaf2", "spine1", 62, 4, h3, frame.QueueTail)
	for i := range 6 { // round
		s.sees(500+frame.Time(i), []string{"leaf1", "spine1"}[i%2], []string{"spine1", "leaf1"}[i%2], uint8(64-i), 5, h3, 0)
	}
	s.sees(600, "leaf1", "h1", 64, 6, h3, 0) // the copy of the spine is missing
	s.sees(604, "leaf2", "spine1", 62, 6, h3, 0)
	s.sees(700, "leaf1", "h1", 64, 7, "10.0.2.2", 0) // came to the wrong leaf
	s.sees(702, "spine1", "leaf1", 63, 7, "10.0.2.2", 0)
	s.sees(704, "leaf2", "spine1", 62, 7, "10.0.2.2", 0)
	s.sees(800, "spine2", "leaf1", 63, 8, h3, frame.NoRoute) // reported, and not matched before

	want := []struct {
		kind    Kind
		path    string
		at      string
		next    string
		reason  string
		missing int
	}{
		{Delivered, "leaf1 spine1 leaf2", "", "", "", 0},
		{Lost, "leaf1", "leaf1", "spine1 spine2", "", 0},
		{Lost, "leaf1 spine2", "spine2", "leaf2", "", 0},
		{Dropped, "leaf1 spine1 leaf2", "leaf2", "", "queue-tail", 0},
		{Looped, "leaf1 spine1 leaf1 spine1 leaf1 spine1", "", "", "", 1},
		{Delivered, "leaf1 leaf2", "", "", "", 1},
		{Lost, "leaf1 spine1 leaf2", "leaf2", "spine1 spine2", "", 0},
		{Dropped, "", "spine2", "", "no-route", 0},
	}
	b := s.book()
	got := b.Verdicts()
	if len(got) != len(want) {
		t.Fatalf("%d traces: %+v", len(got), got)
	}
	for i, w := range want {
		v := got[i]
		if v.Kind != w.kind || strings.Join(v.Path, " ") != w.path || v.At != w.at || strings.Join(v.Next, " ") != w.next || v.Reason != w.reason || v.Missing != w.missing {
			t.Errorf("packet %d: %+v, want %+v", i+1, v, w)
		}
	}
	ends := map[string]float64{}
	for _, s := range b.Suspects() {
		ends[s.Name+" "+s.Reason] = s.Traces
	}
	// Two packets may have gone to either spine.
	if w := map[string]float64{"spine1 ": 1, "spine2 ": 1, "leaf2 ": 1, "leaf2 queue-tail": 1, "spine2 no-route": 1}; !reflect.DeepEqual(ends, w) {
		t.Errorf("%v, want %v", ends, w)
	}
	if c := b.Circles(); len(c) != 1 || !reflect.DeepEqual(c[0].Switches, []string{"leaf1", "spine1"}) || c[0].Visits != 3 || c[0].Traces != 1 {
		t.Errorf("%+v", c)
	}
	// What is still on its way is not lost.
	open := New(s.plan)
	s.sees(frame.Second, "leaf1", "h1", 64, 9, h3, 0)
	for i, c := range s.copies {
		open.Add(s.at[i], c)
	}
	if open.Finish(frame.Second + 5); open.Open != 1 || len(open.Done) != len(want) {
		t.Errorf("%d open, %d judged", open.Open, len(open.Done))
	}
}

func TestLinksAndShares(t *testing.T) {
	s := newSite(t)
	for i := range uint16(40) {
		at, spine, took := frame.Time(i)*1000, "spine1", frame.Time(100)
		if i%4 == 0 {
			spine, took = "spine2", 100+10*frame.Time(i)
		}
		s.sees(at, "leaf1", "h1", 64, i+1, h3, 0)
		s.sees(at+50, spine, "leaf1", 63, i+1, h3, 0)
		s.sees(at+50+took, "leaf2", spine, 62, i+1, h3, 0)
	}
	b := s.book()
	l := b.Links()
	if len(l) != 4 || l[0] != (Link{"spine2", "leaf2", 10, 280, 460, 360}) || l[1].Spread != 0 {
		t.Errorf("%+v", l)
	}
	if v := b.Shares(); len(v) != 1 || v[0] != (Share{"leaf1", 2, 40, 1.5, "spine1", "spine2"}) {
		t.Errorf("%+v", v)
	}
}

func TestPauses(t *testing.T) {
	s := newSite(t)
	for i := range 3 {
		s.copy(frame.Time(i+1)*1000, "leaf2", wt.PFC(wt.MAC(3), 8, 100), mirror.Info{At: frame.Time(i+1) * 1000, Port: 0})
	}
	s.copy(4000, "leaf2", wt.PFC(wt.MAC(3), 8, 0), mirror.Info{At: 4000, Port: 0})
	s.copy(5000, "leaf2", wt.PFC(wt.MAC(3), 8, 9), mirror.Info{At: 5000, Port: 2, Egress: true})
	s.copy(5001, "spine1", wt.PFC(wt.MAC(3), 8, 9), mirror.Info{At: 5001, Port: 1})
	want := []Pauser{{"h3", "leaf2", 3, 1, 1000, 4000}, {"leaf2", "spine1", 1, 0, 5001, 5001}}
	if v := s.book().Pausers(); !reflect.DeepEqual(v, want) {
		t.Errorf("%+v, want %+v", v, want)
	}
}

// Copies that the network lost are known by their numbers.
func TestLostCopies(t *testing.T) {
	s := newSite(t)
	for i := range uint16(10) {
		s.sees(frame.Time(i), "leaf1", "h1", 64, i, h3, 0)
	}
	s.copies, s.at = append(s.copies[:3], s.copies[6:]...), append(s.at[:3], s.at[6:]...)
	if b := s.book(); b.Lost != 3 || b.Copies != 7 {
		t.Errorf("%d lost of %d", b.Lost, b.Copies)
	}
}

// A file of packets and the network beside it say the same; what is damaged is
// refused with its name.
func TestFiles(t *testing.T) {
	s := newSite(t)
	s.sees(100, "leaf1", "h1", 64, 1, h3, 0)
	dir := filepath.Join(t.TempDir(), Dir)
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "run-1.pcapng")
	f := capturetest.Create(t, name, "copies")
	for _, b := range [][]byte{s.copies[0], wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1, 2))} {
		f.Add(100, b)
	}
	f.Close()
	files, err := Files(filepath.Dir(dir))
	if err != nil || len(files) != 1 || files[0] != name {
		t.Fatalf("%v, %v", files, err)
	}
	none, err := Network(name)
	if none != nil || err != nil {
		t.Fatalf("%v, %v", none, err)
	}
	// Without the network switches are addresses, and it is not known where a packet
	// should have gone.
	b, err := Read(files, none)
	if err != nil || b.Copies != 1 || b.Other != 1 || b.Verdicts()[0].Kind != Delivered || b.Verdicts()[0].Path[0] != "10.192.0.1" {
		t.Fatalf("%+v, %v", b, err)
	}
	text, _ := json.Marshal(s.plan.Topology)
	beside := strings.TrimSuffix(name, ".pcapng") + ".json"
	if err := os.WriteFile(beside, text, 0o666); err != nil {
		t.Fatal(err)
	}
	top, err := Network(name)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = Read(files, top); err != nil || b.Verdicts()[0].Kind != Lost || b.Verdicts()[0].Path[0] != "leaf1" {
		t.Fatalf("%+v, %v", b, err)
	}
	for _, bad := range []string{"{", `{"Nodes":[{"Links":[7]}]}`} {
		os.WriteFile(beside, []byte(bad), 0o666)
		if _, err := Network(name); err == nil || !strings.Contains(err.Error(), beside) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	os.WriteFile(name, []byte("no packets"), 0o666)
	if _, err := Read(files, nil); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("%v", err)
	}
	if _, err := Files(t.TempDir()); err == nil || !strings.Contains(err.Error(), "measure.traces") {
		t.Errorf("%v", err)
	}
}

// A filter names switches as the network does.
func TestChoose(t *testing.T) {
	s := newSite(t)
	for i, dst := range []string{"10.0.1.2", "10.0.2.2"} {
		s.sees(1000, "leaf1", "h1", 64, uint16(i), dst, frame.Keep)
		s.sees(2000, []string{"spine1", "spine2"}[i], "leaf1", 63, uint16(i), dst, frame.Keep)
	}
	for filter, want := range map[string]int{"switch == leaf1": 2, "switch == spine2": 1, "switch == spine2 && ip.dst == 10.0.1.2": 0, "lost": 2} {
		b := s.book()
		if err := b.Choose(filter); err != nil || len(b.Done) != want {
			t.Errorf("%s chooses %d packets, %v, want %d", filter, len(b.Done), err, want)
		}
	}
	if err := s.book().Choose("switch == leaf9"); err == nil {
		t.Error("there is no leaf9")
	}
}
