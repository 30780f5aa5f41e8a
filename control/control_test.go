package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/metrics"
	"gswitch/vswitch"
)

// Two switches joined by two wires: a ring of nothing but memory.
const wires = `version: 1
memory: {frames: 8192}
control: {socket: /run/gswitch-test/never.sock}
switches:
  - name: s1
    ports:
      - {name: p1, wire: a, address: [10.0.0.1/24]}
      - {name: p2, wire: b, acl: edge}
    acls:
      edge:
        - {seq: 10, match: {dst: 10.9.0.0/16}, action: drop}
    routes:
      - {prefix: 10.1.0.0/16, via: 10.0.0.2}
  - name: s2
    ports:
      - {name: p1, wire: a}
      - {name: p2, wire: b}
`

func parse(t *testing.T, doc string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run starts a daemon and the API over it.
func run(t *testing.T, doc string) (*Daemon, *httptest.Server) {
	t.Helper()
	d, err := New(t.Context(), parse(t, doc), Options{Version: "v1", Source: "test.yaml", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(d.Handler())
	t.Cleanup(func() {
		srv.Close()
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	return d, srv
}

// call posts JSON, as curl would, and returns the status and the answer.
func call(t *testing.T, srv *httptest.Server, method, body string) (int, map[string]any) {
	t.Helper()
	r, err := http.Post(srv.URL+"/gswitch.v1.Control/"+method, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var v map[string]any
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, v
}

func names(v any, key string) (out []string) {
	for _, e := range v.([]any) {
		out = append(out, e.(map[string]any)[key].(string))
	}
	return out
}

func TestJSONOverHTTP(t *testing.T) {
	_, srv := run(t, wires)
	if code, v := call(t, srv, "GetVersion", "{}"); code != 200 || v["version"] != "v1" || v["generation"] != 1.0 {
		t.Error(code, v)
	}
	code, v := call(t, srv, "ListPorts", "")
	if code != 200 || !slices.Equal(names(v["ports"], "name"), []string{"p1", "p2", "p1", "p2"}) {
		t.Error(code, v)
	}
	p := v["ports"].([]any)[0].(map[string]any)
	if p["up"] != true || p["kind"] != "wire" || p["rx_frames"] != 0.0 || p["rate"] != 0.0 {
		t.Errorf("port: %v", p)
	}
	for method, want := range map[string]struct {
		list string
		n    int
	}{"ListQueues": {"queues", 32}, "ListRoutes": {"routes", 1}, "ListACLs": {"rules", 1}, "ListWorkers": {"workers", 1}, "ListBuffers": {"buffers", 2}} {
		code, v := call(t, srv, method, "{}")
		list, _ := v[want.list].([]any)
		if code != 200 || len(list) < want.n {
			t.Errorf("%s: %d with %d elements, want %d: %v", method, code, len(list), want.n, v)
		}
	}
	for _, method := range []string{"ListFDB", "ListNeighbors", "ListPFC", "ListDrops", "GetConfig"} {
		if code, v := call(t, srv, method, `{"switch":""}`); method != "GetConfig" && code != 200 {
			t.Errorf("%s: %d %v", method, code, v)
		}
	}
	if code, v := call(t, srv, "ListPorts", `{"swich":"s1"}`); code != 400 {
		t.Errorf("an unknown field: %d %v", code, v)
	}
	// People with curl get an answer that shows how.
	for _, send := range []func() (*http.Response, error){
		func() (*http.Response, error) { return http.Get(srv.URL + "/") },
		func() (*http.Response, error) { return http.Get(srv.URL + "/gswitch.v1.Control/ListPorts") },
		func() (*http.Response, error) {
			return http.Post(srv.URL+"/gswitch.v1.Control/ListPorts", "application/x-www-form-urlencoded", strings.NewReader("{}"))
		},
	} {
		r, err := send()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || !strings.Contains(string(text), "curl --unix-socket ") {
			t.Errorf("%s: %v\n%s", r.Status, err, text)
		}
	}
	r, err := http.Get(srv.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || !strings.Contains(string(text), `gswitch_port_up{port="p1",switch="s1"} 1`) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestApply(t *testing.T) {
	d, srv := run(t, wires)
	apply := func(doc string, dry bool) (int, map[string]any) {
		body, err := json.Marshal(map[string]any{"yaml": doc, "file": "new.yaml", "dry_run": dry})
		if err != nil {
			t.Fatal(err)
		}
		return call(t, srv, "Apply", string(body))
	}
	next := strings.Replace(wires, "{name: p2, wire: b, acl: edge}", "{name: p2, wire: b, rate: 10Gbps}\n      - {name: p3, pcap: {write: "+filepath.Join(t.TempDir(), "out.pcap")+"}}", 1)
	bad := strings.Replace(next, "out.pcap", "no/such/dir/out.pcap", 1)
	d.files = parse(t, next).Files() // as if its own file had them
	maps.Copy(d.files, parse(t, bad).Files())
	wantChanges := []any{
		"~ switches[s1].ports[p2].rate: unlimited -> 10Gbps",
		"- switches[s1].ports[p2].acl: edge",
	}
	for _, dry := range []bool{true, false} {
		code, v := apply(next, dry)
		if code != 200 {
			t.Fatal(code, v)
		}
		changes := v["changes"].([]any)
		if d := cmp.Diff(wantChanges, changes[:2]); d != "" || len(changes) != 3 || !strings.HasPrefix(changes[2].(string), "+ switches[s1].ports[p3]: {name: p3, ") {
			t.Error(d, changes)
		}
		wantGen := 2.0
		if dry {
			wantGen = 1
		}
		if v["generation"] != wantGen {
			t.Errorf("dry %v: generation %v", dry, v["generation"])
		}
	}
	_, v := call(t, srv, "ListPorts", `{"switch":"s1"}`)
	if got := names(v["ports"], "name"); !slices.Equal(got, []string{"p1", "p2", "p3"}) {
		t.Error(got)
	}

	before := string(d.Config().YAML())
	for name, doc := range map[string]string{
		"syntax":                     strings.Replace(next, "rate: 10Gbps", "rate: 10", 1),
		"no such route":              strings.Replace(next, "via: 10.0.0.2", "via: 10.7.0.2", 1),
		"needs a restart":            strings.Replace(next, "frames: 8192", "frames: 16384", 1),
		"a file that cannot be made": bad,
		"no such interface":          strings.Replace(next, "- {name: p2, wire: b, rate: 10Gbps}", "- {name: p2, wire: b, rate: 10Gbps}\n      - {interface: nosuchif0}", 1),
	} {
		code, v := apply(doc, false)
		if code == 200 {
			t.Errorf("%s: applied", name)
		}
		if msg, _ := v["message"].(string); msg == "" {
			t.Errorf("%s: %d %v", name, code, v)
		}
		if now := string(d.Config().YAML()); now != before {
			t.Errorf("%s changed the configuration:\n%s", name, cmp.Diff(before, now))
		}
		_, v = call(t, srv, "ListPorts", `{}`)
		for _, p := range v["ports"].([]any) {
			if p := p.(map[string]any); p["up"] != true {
				t.Errorf("%s: port %v is %v", name, p["name"], p["state"])
			}
		}
	}
	_, v = apply(strings.Replace(next, "rate: 10Gbps", "rate: 10", 1), false)
	if want := `new.yaml:8:35: switches[0].ports[1].rate: "10" is not a rate: the unit is missing; write 10Gbps, 100Mbit or unlimited`; v["message"] != want {
		t.Errorf("message %q, want %q", v["message"], want)
	}

	// Back again, without the second switch: its wires hang loose then.
	alone := `version: 1
memory: {frames: 8192}
control: {socket: /run/gswitch-test/never.sock}
switches: [{name: s1, ports: [{name: p1, wire: w}, {name: p2, wire: w}]}]
`
	if code, v := apply(alone, false); code != 200 {
		t.Fatal(code, v)
	}
	if code, v := apply(wires, false); code != 200 {
		t.Fatal(code, v)
	}
	_, v = call(t, srv, "ListPorts", `{}`)
	for _, p := range v["ports"].([]any) {
		if p := p.(map[string]any); p["up"] != true {
			t.Errorf("port %v is %v", p["name"], p["state"])
		}
	}
}

func TestEdits(t *testing.T) {
	d, srv := run(t, wires)
	for _, tc := range []struct {
		body string
		want string // the only change, or the error
	}{
		{`{"switch":"s1","set_port":{"port":"p2","rate":"25Gbps"}}`, "~ switches[s1].ports[p2].rate: unlimited -> 25Gbps"},
		{`{"switch":"s1","set_port":{"port":"p2","enabled":false}}`, "~ switches[s1].ports[p2].enabled: true -> false"},
		{`{"switch":"s1","set_port":{"port":"p4","enabled":false}}`, `switch s1 has no port "p4"; did you mean "p1"?`},
		{`{"set_port":{"port":"p2","enabled":false}}`, `there are several switches; name one of [s1 s2]`},
		{`{"switch":"s1","set":{"table":"routes","yaml":"{prefix: 10.3.0.0/16, via: 10.0.0.3}"}}`, "+ switches[s1].routes[10.3.0.0/16]: {prefix: 10.3.0.0/16, via: 10.0.0.3}"},
		{`{"switch":"s1","delete":{"table":"routes","key":"10.1.0.0/16"}}`, "- switches[s1].routes[10.1.0.0/16]: {prefix: 10.1.0.0/16, via: 10.0.0.2}"},
		{`{"switch":"s1","set":{"table":"fdb","yaml":"{mac: 02:00:00:00:00:77, port: p2}"}}`, "+ switches[s1].fdb.static[02:00:00:00:00:77/1]: {mac: 02:00:00:00:00:77, vlan: 1, port: p2}"},
		{`{"switch":"s1","set":{"table":"acl","acl":"edge","yaml":"{match: {protocol: tcp}, action: drop}"}}`, "+ switches[s1].acls.edge[20]: {seq: 20, match: {protocol: tcp}, action: drop}"},
		{`{"switch":"s1"}`, "the request has none of set_port, set, delete"},
	} {
		_, v := call(t, srv, "Edit", tc.body)
		got, _ := v["message"].(string)
		if list, ok := v["changes"].([]any); ok {
			got = ""
			for _, c := range list {
				got += c.(string)
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.body, got, tc.want)
		}
	}
	_, v := call(t, srv, "ListRoutes", `{"switch":"s1"}`)
	routes := names(v["routes"], "prefix")
	if !slices.Contains(routes, "10.3.0.0/16") || slices.Contains(routes, "10.1.0.0/16") {
		t.Error(routes)
	}
	_, v = call(t, srv, "ListFDB", `{"switch":"s1"}`)
	if e := v["entries"].([]any); len(e) != 1 || e[0].(map[string]any)["mac"] != "02:00:00:00:00:77" || e[0].(map[string]any)["port"] != "p2" {
		t.Error(v)
	}
	_, v = call(t, srv, "ListPorts", `{"switch":"s1","port":"p2"}`)
	if p := v["ports"].([]any)[0].(map[string]any); p["enabled"] != false || p["up"] != false || p["rate"] != 25e9 || p["state"] != "down: disabled" {
		t.Error(p)
	}
	if c := parse(t, string(d.Config().YAML())); len(config.Diff(c, d.Config())) != 0 {
		t.Error("the running document does not read back")
	}
}

// A rate reaches what lies below a port, and so does its end. A wire stays as deep as it is.
func TestRateBelowPorts(t *testing.T) {
	d, srv := run(t, strings.Replace(wires, "{name: p2, wire: b, acl: edge}", "{name: p2, wire: b, acl: edge}\n      - {name: p3, pcap: {write: "+filepath.Join(t.TempDir(), "out.pcap")+"}}", 1))
	for _, rate := range []string{"25Gbps", "unlimited"} {
		for port, want := range map[string]int{"p2": 256, "p3": map[string]int{"25Gbps": 64, "unlimited": 256}[rate]} {
			call(t, srv, "Edit", `{"switch":"s1","set_port":{"port":"`+port+`","rate":"`+rate+`"}}`)
			for _, p := range d.engine.Stats().Ports {
				if p.Name == "s1/"+port && p.TxDepth != want {
					t.Errorf("%s %s: %d frames may wait below the port, want %d", port, rate, p.TxDepth, want)
				}
			}
		}
	}
}

// A snapshot, counters and their clearing.
// A fault of ours while configurations are compared is an error that changes
// nothing, and the daemon takes the next one.
func TestFaultsBeforeAnythingIsTouched(t *testing.T) {
	d, _ := run(t, wires)
	before := string(d.Config().YAML())
	for _, dry := range []bool{true, false} {
		if _, err := d.Edit(func(c *config.Config) error { c.Switches = nil; panic("broken") }, dry); err == nil || !strings.Contains(err.Error(), "(broken); nothing has changed") {
			t.Errorf("edited: %v", err)
		}
		if _, err := d.Apply(nil, "x.yaml", dry); err == nil || !strings.Contains(err.Error(), "nothing has changed") {
			t.Errorf("applied: %v", err)
		}
	}
	if now := string(d.Config().YAML()); now != before {
		t.Error(cmp.Diff(before, now))
	}
	changes, err := d.Apply(parse(t, strings.Replace(wires, "{name: p2, wire: b, acl: edge}", "{name: p2, wire: b}", 1)), "x.yaml", false)
	if err != nil || len(changes) != 1 {
		t.Errorf("after that: %v, %v", changes, err)
	}
}

func TestClearCounters(t *testing.T) {
	d, srv := run(t, wires)
	send := func() {
		u := d.units[0]
		err := d.engine.Worker(0).Do(func(now frame.Time) {
			pool := d.engine.Worker(0).Pool()
			r := pool.New(append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5}, make([]byte, 50)...))
			u.sw.Nodes[0].Receive(now, 1, []frame.Ref{r})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	rx := func() float64 {
		_, v := call(t, srv, "ListPorts", `{"switch":"s1","port":"p2"}`)
		return v["ports"].([]any)[0].(map[string]any)["rx_frames"].(float64)
	}
	send()
	send()
	if n := rx(); n != 2 {
		t.Errorf("%v frames, want 2", n)
	}
	call(t, srv, "ClearCounters", "{}")
	if n := rx(); n != 0 {
		t.Errorf("%v frames after clearing, want 0", n)
	}
	send()
	if n := rx(); n != 1 {
		t.Errorf("%v frames, want 1", n)
	}
	if d.Snapshot().Switches[0].Ports[1].Counts.Rx.Frames != 3 {
		t.Error("clearing reached the counters of the worker")
	}
}

// What is lost below a port is among its drops, under a name of its own.
func TestLossesBelowThePort(t *testing.T) {
	link := dataplane.PortStats{Kind: dataplane.XDP, Up: true, State: "up", TxBudget: 64, MultiBuffer: true, BusyPoll: true,
		PortCounters: dataplane.PortCounters{RxRingFull: 3, RxDropped: 2, TxDropped: 1, FillRingEmpty: 2, TxTaken: 9, TxWaiting: 1,
			Faults: dataplane.FaultCounters{Lost: [fault.NumLosses]uint64{fault.LossRandom: 5, fault.LossLink: 7}, RxLost: 8, Duplicated: 6}}}
	snap := &metrics.Snapshot{Switches: []metrics.Switch{{Name: "s1", Ports: []metrics.Port{{Config: &vswitch.PortConfig{Name: "p1", Enabled: true}, Links: []dataplane.PortStats{link}}}}}}
	c, err := config.Parse("s.yaml", []byte("version: 1\nswitches: [{name: s1, ports: [{interface: p1, faults: {loss: 1%}}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{d: &Daemon{doc: c}}
	snap.Switches[0].SelfDrops[frame.ArenaExhausted] = 4
	var got []string
	for _, d := range s.drops(snap, &api.ListRequest{}).Drops {
		got = append(got, fmt.Sprint(d.Switch, " ", d.Port, " ", d.Reason, " ", d.Frames, " ", d.Loss))
	}
	if d := cmp.Diff([]string{"s1 p1 rx-ring-full 3 true", "s1 p1 rx-dropped 2 true", "s1 p1 tx-ring 1 true", "s1 p1 link-loss 5 true", "s1 p1 link-down 7 true", "s1 p1 link-rx-cut 8 true", "s1  arena-exhausted 4 true"}, got); d != "" {
		t.Error(d)
	}
	p := s.ports(snap, &api.ListRequest{}).Ports[0]
	if p.Drops != 6 || p.TxBudget != 64 || !p.MultiBuffer || !p.BusyPoll || p.Xsk.RxRingFull != 3 {
		t.Error(p)
	}
	if f := p.Faults; f.GetSet() != "{loss: 1%}" || f.Lost["link-loss"] != 5 || f.Lost["link-down"] != 7 || f.RxLost != 8 || f.Duplicated != 6 || f.Taken != 9 || f.Waiting != 1 {
		t.Error(f)
	}
	s.d.baseline = snap
	if n := len(s.drops(snap, &api.ListRequest{}).Drops); n != 0 {
		t.Errorf("%d reasons after clearing", n)
	}
}

func TestUnixSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s1.sock")
	// What a killed daemon leaves behind: a socket without a listener.
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := FindSocket(dir, ""); err == nil {
		t.Errorf("found %s", s)
	}
	d, err := New(t.Context(), parse(t, strings.Replace(wires, "/run/gswitch-test/never.sock", path+", listen: 127.0.0.1:0", 1)), Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	listeners, err := Listen(d.resolved.Control)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path, ""); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("(process %d)", os.Getpid())) {
		t.Errorf("second listener: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- d.Serve(ctx, listeners) }()

	if _, err := FindSocket(t.TempDir(), filepath.Join(dir, "*.sock")); err == nil || !strings.Contains(err.Error(), "there is a fabric: choose a daemon of it with\n  --socket "+path) {
		t.Errorf("a fabric elsewhere: %v", err)
	}
	found, err := FindSocket(dir, "")
	if err != nil || found != path {
		t.Errorf("found %q, %v", found, err)
	}
	if s := SocketNamed(dir, "s1"); s != path {
		t.Errorf("s1 is at %s", s)
	}
	if _, err := d.Edit(func(c *config.Config) error { c.Switches[0].Name = "renamed"; return nil }, false); err != nil {
		t.Fatal(err)
	}
	if s := SocketNamed(dir, "renamed"); s != path {
		t.Errorf("the renamed switch is at %s", s)
	}
	c := Dial(path)
	v, err := c.GetVersion(ctx, &api.GetVersionRequest{})
	if err != nil || v.Socket != path {
		t.Error(v, err)
	}
	address := listeners[1].Addr().String()
	if v, err := Dial(address).GetVersion(ctx, &api.GetVersionRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("over TCP at %s: %v %v", address, v, err)
	}
	_, err = DialHost(path).ListHosts(ctx, &api.ListHostsRequest{})
	if err := Explain(path, err); err == nil || !strings.Contains(err.Error(), "what listens at "+path+" does not have what was asked for") {
		t.Errorf("a switch that is asked for hosts: %v", err)
	}
	stream, err := c.Watch(ctx, &api.WatchRequest{IntervalMs: 50})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !stream.Receive() || len(stream.Msg().Ports) != 4 {
			t.Fatal(stream.Err())
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	_, err = c.GetVersion(context.Background(), &api.GetVersionRequest{})
	if err := Explain(path, err); err == nil || !strings.HasPrefix(err.Error(), "no daemon listens at "+path+"; gfabric status ") {
		t.Error(err)
	}

	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path, ""); err == nil || !strings.Contains(err.Error(), "is there and is not a socket") {
		t.Error(err)
	}
}
