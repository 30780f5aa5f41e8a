package gfabric

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gswitch/capture/capturetest"
	"gswitch/config"
	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// replayDocument is a switch whose port out is slower than what comes in.
func replayDocument(in, out, rate string) string { return replayDocumentOf("s1", in, out, rate) }

func replayDocumentOf(name, in, out, rate string) string {
	return fmt.Sprintf(`version: 1
memory: {frames: 4096}
control: {socket: /run/gswitch-test/never.sock}
switches:
  - name: %s
    ports:
      - {name: in, pcap: {read: %s}}
      - {name: out, pcap: {write: %s}, rate: %s}
    buffer: {size: 4MB, limit: 20KB}
    fdb: {static: [{mac: "02:00:00:00:00:01", port: out}]}
`, name, in, out, rate)
}

// recordedSwitch is the record of a switch that 300 frames went through, and drops.
func recordedSwitch(t *testing.T) (record, in, out string) {
	t.Helper()
	return recordedSwitchOf(t, "s1", t.TempDir())
}

// recordedSwitchOf is that of a switch of a name, in a directory.
func recordedSwitchOf(t *testing.T, name, dir string) (record, in, out string) {
	t.Helper()
	in, out = filepath.Join(dir, "in.pcapng"), filepath.Join(dir, "out.pcapng")
	f := capturetest.Create(t, in, "in")
	for i := range 300 {
		b := wt.Frame(wt.Eth(wire.MAC{2, 0, 0, 0, 0, 1}, wire.MAC{2, 0, 0, 0, 0, 2}), wt.IPv4("10.0.0.2", "10.0.0.1", wt.IPv4With(func(h *wire.IPv4Fields) { h.ID = uint16(i) })),
			wt.UDP(7, 9), wt.Zeros(958))
		f.Add(int64(i)*400_000, b)
	}
	f.Close()
	doc, err := config.Parse("test.yaml", []byte(replayDocumentOf(name, in, out, "10Mbps")))
	if err != nil {
		t.Fatal(err)
	}
	d, err := control.New(t.Context(), doc, control.Options{Version: version, Record: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		came := uint64(0)
		for _, p := range d.Snapshot().Switches[0].Ports {
			came += p.Counts.Rx.Frames
		}
		if came == 300 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	return d.Recordings()[0].File, in, out
}

func replayOf(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	c := replayCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.ExecuteContext(context.Background())
	return out.String(), err
}

// column returns a number in the row of a table that begins with a word.
func column(t *testing.T, table, row string, at int) (n int) {
	t.Helper()
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > at && f[0] == row {
			n, err := strconv.Atoi(f[at])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// A replay ends where a comparison holds, and not before.
func TestReplayUntil(t *testing.T) {
	record, _, _ := recordedSwitch(t)
	out, err := replayOf(t, record, "--until", `drops{reason="queue-tail"} >= 3`, "--", "gswitch", "show", "drops")
	if n := column(t, out, "in", 2); err != nil || n < 3 || n > 64 { // a call may bring a vector of frames
		t.Errorf("%v, %d drops: %s", err, n, out)
	}
	if out, err := replayOf(t, record, "--until", `queue_bytes{port="out", queue="0"} > 10KB`, "--json"); err == nil {
		t.Errorf("a flag that is none: %s", out)
	}
	out, err = replayOf(t, record, "--until", `queue_bytes{port="out", queue="0"} > 10KB`, "--", "gswitch", "show", "queues")
	if n := column(t, out, "out", 3); err != nil || n <= 10_000 {
		t.Errorf("%v, %d bytes: %s", err, n, out)
	}
	for _, c := range [][2]string{
		{`drops > 1e9`, "did not come up to the end"},
		{`drop > 3`, "there is no value drop; there are drops"},
		{`queue_bytes{reason="x"} > 3`, "queue_bytes has no label reason"},
		{`queue_bytes{queue="9"} > 3`, `queue "9" is none of 0 to 7`},
		{`queue_bytes > much`, "neither a number nor a size"},
		{`queue_bytes`, "say drop, drop:REASON, or a comparison"},
		{`drops{reason="queue"} > 1`, `there is no reason "queue"`},
	} {
		if _, err := replayOf(t, record, "--until", c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("--until %s: %v", c[0], err)
		}
	}
}

// A replay of which no hash could be compared does not say that it is identical.
func TestNothingToCompare(t *testing.T) {
	record, _, _ := recordedSwitch(t)
	b, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.grec")
	if err := os.WriteFile(cut, b[:bytes.Index(b, []byte("GSEG"))+9], 0o600); err != nil {
		t.Fatal(err)
	}
	sums := recordWithHashes(t, record)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{record}, `[1-9]\d* frames sent, [1-9]\d* hashes compared: identical\n$`},
		{[]string{record, "--at", "0s"}, ` 0 frames sent, \d+ hashes compared: nothing to compare: no frame was sent\n$`},
		{[]string{sums, "--until", "sent >= 19"}, ` 19 frames sent, 0 hashes compared: nothing to compare: the record has no hash of what was sent up to here\n$`},
		{[]string{sums, "--until", "sent >= 21"}, ` 21 frames sent, 1 hashes compared: identical\n$`},
		{[]string{sums, "--until", "sent >= 40"}, ` 40 frames sent, 1 hashes compared: identical\n$`},
		{[]string{sums}, ` 40 frames sent, 2 hashes compared: identical\n$`},
		{[]string{cut}, ` 0 hashes compared: nothing to compare: no frame was sent; the record is cut off here: it was not ended\n$`},
	} {
		if said, err := replayOf(t, c.args...); err != nil || !regexp.MustCompile(c.want).MatchString(said) {
			t.Errorf("%v: %v: %s", c.args[1:], err, said)
		}
	}
}

// recordWithHashes is a record of the switch of another one, which sends forty frames: it has a hash of them
// behind the twentieth and at the end.
func recordWithHashes(t *testing.T, record string) string {
	t.Helper()
	b, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	in, err := replay.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	h := in.Header
	pool := frame.NewPool(frame.MustArena(h.Chunks, h.Chunk, h.Headroom))
	m, err := control.Rebuild(&h, pool)
	if err != nil {
		t.Fatal(err)
	}
	now, feed := h.Start, replay.NewFeed(4, h.Chunk)
	rec, err := replay.NewRecorder(now, m.(*control.Replayed).Node, pool, feed)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]uint16{}
	for _, p := range h.Ports {
		numbers[p.Name] = uint16(p.Number)
		rec.SetLink(now, uint16(p.Number), true)
	}
	for i := range 40 {
		if i == 20 {
			rec.Flush(now)
		}
		now += frame.Millisecond
		rec.Receive(now, numbers["in"], []frame.Ref{pool.New(wt.Frame(wt.Eth(wire.MAC{2, 0, 0, 0, 0, 1}, wire.MAC{2, 0, 0, 0, 0, 2}),
			wt.IPv4("10.0.0.2", "10.0.0.1"), wt.UDP(7, 9), wt.Zeros(958)))})
		rec.Advance(now)
		var out [4]frame.Ref
		n := rec.Transmit(now, numbers["out"], out[:])
		if n != 1 {
			t.Fatalf("%d frames leave", n)
		}
		pool.Free(out[0])
	}
	rec.End(now)
	var file bytes.Buffer
	w, err := replay.NewWriter(&file, &h)
	for s := feed.Next(); s != nil && err == nil; s = feed.Next() {
		err = w.Write(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "hashes.grec")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// What is shown is the switch at the instant of --at, and not at the last call before it.
func TestReplayAtAnInstant(t *testing.T) {
	record, _, _ := recordedSwitch(t)
	at := func(t1 string) (now int64) {
		said, err := replayOf(t, record, "--at", t1, "--", "gswitch", "show", "pauses", "--json")
		if err != nil {
			t.Fatal(err)
		}
		var v struct{ Now int64 }
		if err := json.Unmarshal([]byte(said[strings.Index(said, "\n")+1:]), &v); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return v.Now
	}
	if a, b := at("50ms"), at("50.000003ms"); b-a != 3 {
		t.Errorf("3 ns later it is %v ns later", b-a)
	}
}

// The same inputs with another configuration: nothing is different with the same one,
// a faster port drops nothing.
func TestReplayWhatIf(t *testing.T) {
	record, in, out := recordedSwitch(t)
	with := func(rate, limit string) string {
		file := filepath.Join(t.TempDir(), "other.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(replayDocument(in, out, rate), "20KB", limit, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	said, err := replayOf(t, record, "--what-if", with("10Mbps", "20KB"))
	if err != nil || !strings.Contains(said, "nothing would have been different") {
		t.Errorf("the same configuration: %v: %s", err, said)
	}
	said, err = replayOf(t, record, "--what-if", with("100Mbps", "1MB"))
	rows := map[string][]string{}
	for line := range strings.Lines(said) {
		if f := strings.Fields(line); len(f) > 4 {
			rows[strings.Join(f[:len(f)-2], " ")] = f[len(f)-2:]
		}
	}
	if d := rows["in drops of what came in, queue-tail"]; err != nil || len(d) != 2 || d[0] == "0" || d[1] != "0" || !strings.Contains(said, "the first frame that would have left otherwise") {
		t.Errorf("a faster port with more room: %v: %s", err, said)
	}
	// The same settings one by one: the ports by their names.
	one, err := replayOf(t, record, "--set", "ports.out.rate=100Mbps", "--set", "buffer.limit=1MB")
	if err != nil || one != said {
		t.Errorf("--set: %v: %s\n--what-if: %s", err, one, said)
	}
	var d difference
	one, err = replayOf(t, record, "--set", "ports.out.rate=100Mbps", "--json")
	if err := errors.Join(err, json.Unmarshal([]byte(one), &d)); err != nil || d.First <= 0 || len(d.Rows) == 0 || d.Replayed <= 0 {
		t.Errorf("%v: %s", err, one)
	}
	for _, wrong := range []string{"bufer.limit=1MB", "buffer.limit", "ports.nosuch.rate=1Gbps", "buffer.limit=red"} {
		if said, err := replayOf(t, record, "--set", wrong); err == nil || cli.ExitCode(err) != exitUsage {
			t.Errorf("--set %s: %v: %s", wrong, err, said)
		}
	}
	if _, err := replayOf(t, record, "--what-if", with("100Mbps", "1MB"), "--until", "drop"); err == nil {
		t.Error("--what-if took --until")
	}
	if _, err := replayOf(t, record, "--what-if", filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a file that is not there was taken")
	}
}
