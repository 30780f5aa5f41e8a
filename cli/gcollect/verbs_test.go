package gcollect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gswitch/collect"
	"gswitch/mirror"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// collector runs gcollect in this process, without reports and metrics, and returns its
// directory and where it takes copies over UDP.
func collector(t *testing.T, more ...string) (data, udp string) {
	data = t.TempDir()
	r, w := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	root := Command("test")
	root.SetArgs(append([]string{"run", "--data", data, "--reports", "", "--metrics", "", "--udp", "127.0.0.1:0", "--trace-idle", "1ms", "--keep-privileges"}, more...))
	root.SetOut(w)
	root.SetErr(io.Discard)
	go func() {
		defer close(done)
		err := root.ExecuteContext(ctx)
		w.CloseWithError(err)
		if err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	line, err := bufio.NewReader(r).ReadString('\n')
	_, udp, ok := strings.Cut(strings.TrimSpace(line), "over udp at ")
	if err != nil || !ok {
		t.Fatalf("gcollect prints %q, %v", line, err)
	}
	go io.Copy(io.Discard, r)
	// It is ready for reports and copies, and answers a moment later.
	for _, verb := range []string{"count list", "marks show"} {
		for _, err := ask(t, data, strings.Fields(verb)...); err != nil; _, err = ask(t, data, strings.Fields(verb)...) {
			select {
			case <-done:
				t.Fatal(verb, err)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return data, udp
}

// ask is what a verb prints.
func ask(t *testing.T, data string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := Command("test")
	root.SetArgs(append(args, "--data", data))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// Counters are added to a collector that runs, count what their filter chooses and nothing
// else, and are gone when they are removed.
func TestCountVerbs(t *testing.T) {
	data, udp := collector(t, "--count", "all=udp")
	for _, c := range []struct{ args, why string }{
		{"add web tcp.dstport", "tcp.dstport"}, {"add all udp", "--count"}, {"remove web", "no counter"}, {"remove all", "--count"},
	} {
		args := append([]string{"count"}, strings.SplitN(c.args, " ", 3)...)
		if out, err := ask(t, data, args...); err == nil || !strings.Contains(err.Error(), "refused: ") || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %q, %v", c.args, out, err)
		}
	}
	for range 2 { // to add what there is changes nothing
		if out, err := ask(t, data, "count", "add", "web", "udp.dstport == 443"); err != nil || !strings.Contains(out, "udp.dstport == 443") {
			t.Fatal(out, err)
		}
	}
	counters := func() map[string]collect.Counter {
		out, err := ask(t, data, "count", "list", "--json")
		var st collect.CountState
		if err == nil {
			err = json.Unmarshal([]byte(out), &st)
		}
		if err != nil {
			t.Fatal(out, err)
		}
		v := map[string]collect.Counter{}
		for _, c := range st.Counters {
			v[c.Name] = c
		}
		return v
	}
	c, err := net.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := mirror.Session{ID: 1, Src: netip.MustParseAddr("10.10.0.1"), Dst: netip.MustParseAddr("10.9.0.1")}
	const length = wire.IPv4Len + wire.UDPLen
	id := uint16(0)
	send := func(port uint16) { // a copy of a packet to a port
		id++
		b, packet := make([]byte, 400), wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.0.0.1", "10.0.1.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = id })), wt.UDP(7, port))
		n, _ := s.Copy(b, packet, uint32(len(packet)), mirror.Info{})
		if _, err := c.Write(b[wire.EthernetLen+wire.IPv4Len : n]); err != nil {
			t.Fatal(err)
		}
	}
	sent := uint64(0)
	for ; counters()["web"].Packets < 3; time.Sleep(20 * time.Millisecond) {
		sent++
		send(443)
		send(80)
	}
	got := counters()
	if web, all := got["web"], got["all"]; len(got) != 2 || web.Bytes != web.Packets*length || all.Bytes != all.Packets*length || all.Packets < web.Packets || web.Packets > sent || web.Since.IsZero() || !all.Since.IsZero() {
		t.Errorf("%+v", got)
	}
	if out, err := ask(t, data, "count", "remove", "web"); err != nil || strings.Contains(out, "443") || !strings.Contains(out, "all") {
		t.Errorf("%q, %v", out, err)
	}
	if got := counters(); len(got) != 1 {
		t.Errorf("what was removed is there: %+v", got)
	}
	// One that is added again counts anew: packets to a third port, since copies of those to the first
	// two may not have been judged yet.
	if out, err := ask(t, data, "count", "add", "web", "udp.dstport == 8080"); err != nil {
		t.Fatal(out, err)
	}
	if web, ok := counters()["web"]; !ok || web.Packets != 0 {
		t.Errorf("%+v", web)
	}
}

// Marks are allowed by a collector that runs, within what it takes, are shown and end.
func TestMarksVerbs(t *testing.T) {
	data, _ := collector(t, "--most-copies", "1000")
	for _, c := range []struct{ args, want, why string }{
		{"allow web --host h1 --most 100 --switches 5", "web", ""},
		{"allow db --host h2 --most 101 --switches 5", "", "505 copies a second are too many: 500 of 1000 are in use"},
		{"allow db --host h2 --most 100 --switches 5 --for 2h", "db", ""},
		{"show", "1000", ""},
		{"end web", "db", ""},
		{"end web", "", "no marks"},
	} {
		out, err := ask(t, data, append([]string{"marks"}, strings.Fields(c.args)...)...)
		if c.why == "" && (err != nil || !strings.Contains(out, c.want)) || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %q, %v", c.args, out, err)
		}
	}
}
