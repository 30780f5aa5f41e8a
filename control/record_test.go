package control

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"gswitch/capture/capturetest"
	"gswitch/config"
	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// What a record holds of a configuration makes the same switch.
func TestMadeFrom(t *testing.T) {
	doc, err := os.ReadFile("../config/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("example.yaml", doc)
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{doc: c, resolved: c.Resolved()}
	for i := range d.resolved.Switches {
		s := &d.resolved.Switches[i]
		numbers := map[string]int{}
		for k := range s.Ports {
			numbers[s.Ports[k].Name] = (k + 3) * 2
		}
		m := madeFrom(d.document(s), s, numbers)
		_, back, err := m.config(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := back.VSwitch(m.numbers()), s.VSwitch(numbers); !reflect.DeepEqual(got, want) {
			t.Errorf("switch %s comes back as\n%+v\nit was\n%+v", s.Name, got, want)
		}
	}
	if _, _, err := (&made{Document: string(doc)}).config("nobody"); err == nil {
		t.Error("a switch that is not in the document was found")
	}
}

// source writes frames for a port to read, ends after ends, and returns the file.
func source(t *testing.T, frames int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in.pcapng")
	f := capturetest.Create(t, file, "in")
	for i := range frames {
		b := wt.Frame(wt.Eth(wt.MAC(uint16(2+i%3)), wt.MAC(uint16(10+i%7))), wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(h *wire.IPv4Fields) { h.ID = uint16(i) })),
			wt.UDP(uint16(i%5), 9), wt.Zeros(i%1400))
		f.Add(int64(i)*100_000, b)
	}
	f.Close()
	return file
}

func recorded(t *testing.T, dir string, o RecordOptions, frames int) *Daemon {
	t.Helper()
	doc := fmt.Sprintf(`version: 1
memory: {frames: 4096}
control: {socket: /run/gswitch-test/never.sock}
switches:
  - name: s1
    ports:
      - {name: in, pcap: {read: %s}}
      - {name: a, pcap: {write: %s}, rate: 10Mbps}
      - {name: b, pcap: {write: %s}, rate: 1Gbps}
    buffer: {size: 4MB, limit: 100KB}
    fdb: {static: [{mac: "02:00:00:00:00:02", port: a}, {mac: "02:00:00:00:00:03", port: b}]}
`, source(t, frames), filepath.Join(t.TempDir(), "a.pcapng"), filepath.Join(t.TempDir(), "b.pcapng"))
	d, err := New(t.Context(), parse(t, doc), Options{Version: "v1", Source: "test.yaml", Record: dir, RecordOptions: o, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// through waits until n frames came.
func through(d *Daemon, n uint64) {
	wait(d, n, func(c *vswitch.PortCounts) uint64 { return c.Rx.Frames })
}

// out waits until n frames left. Of those that came some are dropped, the more the
// later the worker is.
func out(d *Daemon, n uint64) {
	wait(d, n, func(c *vswitch.PortCounts) uint64 { return c.Tx.Frames })
}

// wait waits until n frames of all ports are counted.
func wait(d *Daemon, n uint64, count func(c *vswitch.PortCounts) uint64) {
	for {
		sum := uint64(0)
		for _, p := range d.Snapshot().Switches[0].Ports {
			sum += count(&p.Counts)
		}
		if sum >= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func playFile(t *testing.T, file string) (*replay.Player, error) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in, err := replay.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.NewPlayer(in, Rebuild)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = p.Step()
	}
	return p, err
}

// A daemon is recorded from its start, while routes, configurations and tables
// change; the replay is the same run, and shows the same.
func TestDaemonIsRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "records")
	d := recorded(t, dir, RecordOptions{}, 20_000)
	through(d, 500)
	if _, err := d.Edit(func(c *config.Config) error { return c.Switches[0].Ports[1].Rate.UnmarshalText([]byte("20Mbps")) }, false); err != nil {
		t.Fatal(err)
	}
	live := httptest.NewServer(d.Handler())
	defer live.Close()
	client := api.NewControlClient(live.Client(), live.URL)
	if _, err := client.FlushFDB(t.Context(), &api.FlushFDBRequest{}); err != nil {
		t.Fatal(err)
	}
	if r, err := client.Record(t.Context(), &api.RecordRequest{Action: api.RecordRequest_SAVE}); err != nil || len(r.Recordings) != 1 || !r.Recordings[0].On || r.Recordings[0].Steps == 0 {
		t.Errorf("saved: %v, %v", r, err)
	}
	through(d, 20_000) // from now on the switch drops nothing that its record has not
	out(d, 2200)       // with each 1024 of them a hash, give or take a vector
	if _, err := client.Record(t.Context(), &api.RecordRequest{Action: api.RecordRequest_START}); err == nil || !strings.Contains(err.Error(), "recorded already") {
		t.Errorf("a second record of the switch: %v", err)
	}
	r, err := client.Record(t.Context(), &api.RecordRequest{Action: api.RecordRequest_STOP})
	if err != nil || len(r.Recordings) != 1 || r.Recordings[0].On || r.Recordings[0].Ended != "stopped" {
		t.Fatalf("stopped: %v, %v", r, err)
	}
	if _, err := client.Record(t.Context(), &api.RecordRequest{Action: api.RecordRequest_STOP}); err == nil {
		t.Error("a record that is over was stopped")
	}
	file := r.Recordings[0].File
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 || filepath.Dir(file) != dir {
		t.Errorf("the record is %v, %v", st.Mode(), err)
	}
	p, err := playFile(t, file)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if frames, sums := p.Sent(); frames < 2000 || sums < 2 || p.Steps() != r.Recordings[0].Steps {
		t.Errorf("%d frames, %d hashes, %d steps of %d", frames, sums, p.Steps(), r.Recordings[0].Steps)
	}
	handler, err := p.Node.(*Replayed).Handler(p.Header, p.Now())
	if err != nil {
		t.Fatal(err)
	}
	past := httptest.NewServer(handler)
	defer past.Close()
	then := api.NewControlClient(past.Client(), past.URL)
	for what, list := range map[string]func(c api.ControlClient) (proto.Message, error){
		"addresses": func(c api.ControlClient) (proto.Message, error) {
			m, err := c.ListFDB(t.Context(), &api.ListRequest{})
			for _, e := range m.GetEntries() {
				e.AgeSeconds = 0
			}
			return m, err
		},
		"drops": func(c api.ControlClient) (proto.Message, error) { return c.ListDrops(t.Context(), &api.ListRequest{}) },
	} {
		now, err := list(client)
		if err != nil {
			t.Fatal(err)
		}
		was, err := list(then)
		if err != nil || !proto.Equal(now, was) {
			t.Errorf("%s: the replay shows %v, %v, the switch %v", what, was, err, now)
		}
	}
	if _, err := then.FlushFDB(t.Context(), &api.FlushFDBRequest{}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a change to a record: %v", err)
	}
}

// A disk that takes no more ends the record, and not the switch.
func TestRecordEndsWithTheDisk(t *testing.T) {
	d := recorded(t, t.TempDir(), RecordOptions{}, 3000)
	through(d, 100)
	d.mu.Lock()
	d.units[0].recording.out.Close() // every write fails from now on
	d.mu.Unlock()
	through(d, 3000)
	for d.Recordings()[0].On {
		time.Sleep(5 * time.Millisecond)
	}
	if why := d.Recordings()[0].Ended; !strings.Contains(why, "closed") {
		t.Errorf("the record ended because: %s", why)
	}
	if _, err := playFile(t, d.Recordings()[0].File); !errors.Is(err, replay.ErrCut) {
		t.Errorf("what was written before: %v", err)
	}
}

// So does a limit: what was written before replays.
func TestRecordHasALimit(t *testing.T) {
	d := recorded(t, t.TempDir(), RecordOptions{Limit: 5000}, 3000)
	for d.Recordings()[0].On {
		if _, err := d.SaveRecording("", ""); err != nil {
			t.Fatal(err)
		}
	}
	r := d.Recordings()[0]
	n := uint64(0) // before it was written why the record ends
	if _, err := fmt.Sscanf(r.Ended, "it has %d bytes, and its limit is 5000", &n); err != nil || n < 5000 || n >= r.Stats.Bytes || n > 100_000 {
		t.Errorf("after %d bytes the record ended because: %s", r.Stats.Bytes, r.Ended)
	}
	var lost replay.LostError
	if p, err := playFile(t, r.File); !errors.As(err, &lost) || lost.Why != r.Ended || p.Steps() != r.Stats.Steps {
		t.Errorf("%d of %d steps replay: %v", p.Steps(), r.Stats.Steps, err)
	}
	through(d, 3000)
}

// A switch that has been at work is recorded from an image of it.
func TestRecordOfARunningSwitch(t *testing.T) {
	d := recorded(t, "", RecordOptions{}, 20_000) // two seconds of them: many come after the image, however late that is
	d.mu.Lock()
	d.recordsIn = t.TempDir()
	d.mu.Unlock()
	through(d, 500)
	r, err := d.StartRecording("s1", RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	through(d, 1500)
	if _, err := d.Edit(func(c *config.Config) error { return c.Switches[0].Ports[1].Rate.UnmarshalText([]byte("20Mbps")) }, false); err != nil {
		t.Fatal(err)
	}
	through(d, 20_000)
	if _, err := d.StopRecording(""); err != nil {
		t.Fatal(err)
	}
	p, err := playFile(t, r[0].File)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	came := uint64(0)
	for i := range uint16(3) {
		c := vswitch.PortCounts{}
		p.Node.(*Replayed).ReadPort(i, &c)
		came += c.Rx.Frames
	}
	if _, sums := p.Sent(); came != 20_000 || sums < 1 {
		t.Errorf("the switch of the replay got %d frames; %d hashes", came, sums)
	}
}

// What is kept is bounded; a drop has it written to a file, and so does a call of the API.
func TestRecordKeepsTheLast(t *testing.T) {
	on, err := ParseTriggers([]string{"drop:queue-tail"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d := recorded(t, dir, RecordOptions{Last: leastKept, On: on}, 20_000) // from the beginning: the drops do not wait
	find := func(why string) RecordStatus {
		for {
			for _, r := range d.Recordings() {
				if r.Ended == why {
					return r
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	dropped := find("saved: drop:queue-tail")
	p, err := playFile(t, dropped.File)
	saved := replay.SavedError{}
	if !errors.As(err, &saved) || saved.Why != "drop:queue-tail" {
		t.Fatal(err)
	}
	drops := [frame.NumReasons]uint64{}
	for i := range uint16(3) {
		p.Node.(*Replayed).AddDrops(i, &drops)
	}
	if drops[frame.QueueTail] == 0 {
		t.Error("the drop is not in the file")
	}
	through(d, 20_000)
	if _, err := d.SaveRecording("", "a test"); err != nil {
		t.Fatal(err)
	}
	last := find("saved: a test")
	if st, err := os.Stat(last.File); err != nil || st.Mode().Perm() != 0o600 || st.Size() > leastKept {
		t.Errorf("%v, %v", st, err)
	}
	if _, err := playFile(t, last.File); !errors.As(err, &saved) {
		t.Error(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("%d files", len(files))
	}
}

// A disk without room for what is kept leaves no half file, and the recording goes on.
func TestNoRoomForWhatIsKept(t *testing.T) {
	d := recorded(t, "", RecordOptions{}, 3000)
	through(d, 100)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		if os.Getenv("GSWITCH_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("a small disk needs root")
	}
	defer unix.Unmount(dir, 0)
	d.mu.Lock()
	d.recordsIn = dir
	d.mu.Unlock()
	if _, err := d.StartRecording("s1", RecordOptions{Last: leastKept}); err != nil {
		t.Fatal(err)
	}
	through(d, 3000)
	if _, err := d.SaveRecording("", "a test"); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a file on a disk that is full: %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 || !d.Recordings()[0].On {
		t.Errorf("%d files, %+v", len(files), d.Recordings())
	}
	if _, err := d.StopRecording(""); err != nil {
		t.Fatal(err)
	}
	// A record that goes to the disk as it comes ends.
	if _, err := d.StartRecording("s1", RecordOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		if r := d.Recordings(); !r[len(r)-1].On {
			if why := r[len(r)-1].Ended; !strings.Contains(why, "no space") {
				t.Errorf("it ended because: %s", why)
			}
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestParseTriggers(t *testing.T) {
	for _, bad := range []string{"", "drop:", "drop:nothing", "storm", "drops"} {
		if _, err := ParseTriggers([]string{bad}); err == nil {
			t.Errorf("%q is no trigger, and was taken", bad)
		}
	}
	if on, err := ParseTriggers([]string{"drop", "pause-storm"}); err != nil || !on.storm || !on.reasons[frame.HeadroomFull] || on.reasons[frame.PauseConsumed] {
		t.Errorf("%+v, %v", on, err)
	}
}

// What the API asks for has a limit although none was set.
func TestRecordsThatAreAskedForHaveALimit(t *testing.T) {
	d := recorded(t, "", RecordOptions{}, 10)
	dir := t.TempDir()
	d.mu.Lock()
	d.recordsIn = dir
	d.mu.Unlock()
	r, err := d.StartRecording("s1", RecordOptions{})
	if err != nil || len(r) != 1 || filepath.Dir(r[0].File) != dir {
		t.Fatalf("%+v, %v", r, err)
	}
	d.mu.Lock()
	limit := d.units[0].recording.o.Limit
	d.mu.Unlock()
	if limit != startedLimit {
		t.Errorf("the limit is %d", limit)
	}
	if _, err := d.StopRecording("s1"); err != nil {
		t.Error(err)
	}
}

// What several workers read of each other is not recorded: that is said.
func TestSeveralWorkersAreNotRecorded(t *testing.T) {
	doc := `version: 1
workers: [{}, {}]
memory: {frames: 8192}
control: {socket: /run/gswitch-test/never.sock}
switches:
  - name: s1
    ports: [{name: p1, wire: a, workers: [0]}, {name: p2, wire: a, workers: [1]}]
`
	_, err := New(t.Context(), parse(t, doc), Options{Record: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "switch s1 runs on 2 workers") {
		t.Errorf("recording two workers: %v", err)
	}
	d, err := New(t.Context(), parse(t, doc), Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	if _, err := d.StartRecording("", RecordOptions{}); err == nil || !strings.Contains(err.Error(), "switch s1 runs on 2 workers") {
		t.Errorf("recording two workers: %v", err)
	}
	if s := d.Snapshot(); len(s.Switches) != 1 {
		t.Error("the refusal took the switch away")
	}
}
