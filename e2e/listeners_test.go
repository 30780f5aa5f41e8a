package e2e

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"gswitch/natsserver"
)

// page is an address at which a program answers HTTP.
type page struct {
	name    string
	at      string // host:port
	pid     int
	reads   string   // what may be read without a token
	changes []string // what is refused without a token, by any method
}

// asking sends a request and returns what comes of it.
func (p *page) asking(t *testing.T, method, path, host string, header http.Header) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+p.at+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host, r.Close = host, true
	if header != nil {
		r.Header = header
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return a.StatusCode, a.Header, string(b)
}

// open is how many files a process has open.
func (p *page) open(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// began starts a program that says a line when it is ready.
func began(t *testing.T, word string, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	out, err := c.StdoutPipe()
	c.Stderr = c.Stdout
	if err := errors.Join(err, c.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), word) {
			go func() {
				for lines.Scan() { // it must not stand at a full pipe
				}
			}()
			return c
		}
	}
	t.Fatalf("%v ends without the word %q", c.Args, word)
	return nil
}

// runs is a run in virtual time that is looked at and does not end by itself.
func runs(t *testing.T, args ...string) *exec.Cmd {
	return exec.Command(gfabric, append([]string{"run", "../scenarios/quickstart.yaml", "--quiet", "--pace", "100ns", "--out", t.TempDir()}, args...)...)
}

// recorded returns the record of a switch, of a document with nothing but wires.
func recorded(t *testing.T, document string) string {
	t.Helper()
	dir := t.TempDir()
	d := launchProgram(t, gswitch, filepath.Join(dir, "sock"), "-c", document, "--record", dir)
	d.await()
	d.stop()
	files, err := filepath.Glob(filepath.Join(dir, "*.grec"))
	if err != nil || len(files) == 0 {
		t.Fatalf("records: %v, %v", files, err)
	}
	return files[0]
}

// listening returns where a process listens over TCP.
func listening(t *testing.T, pid int) (at []netip.AddrPort) {
	t.Helper()
	mine := map[string]bool{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:[") {
			mine[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !mine[f[9]] {
				continue
			}
			host, port, _ := strings.Cut(f[1], ":")
			b, err := hex.DecodeString(host)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(b); i += 4 { // words of the machine's own order
				binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
			}
			n, err := strconv.ParseUint(port, 16, 16)
			a, ok := netip.AddrFromSlice(b)
			if err != nil || !ok {
				t.Fatalf("%s: %v", line, err)
			}
			at = append(at, netip.AddrPortFrom(a.Unmap(), uint16(n)))
		}
	}
	return at
}

// Every address at which the programs listen over TCP, with who may do what there
// (docs/SECURITY.md, "Addresses"): by another name nothing, from another page nothing, and
// without a token nothing but reading; connections that send nothing, or little, are closed in time; and
// three thousand that send nothing are not held.
func TestAddresses(t *testing.T) {
	n := newBumpNet(t, 3, 0)
	n.hosts[0].addBump(t)
	fabric := filepath.Join(t.TempDir(), "fabric.yaml")
	write(t, fabric, "version: 1\nname: line\nmode: l2\nhosts: [h1, h2]\nswitches: [s1, s2]\nlinks: [{a: h1, b: s1}, {a: h2, b: s2}, {a: s1, b: s2, rate: 10Gbps}]\n")
	looks := []string{"/", "/api/layout", "/api/samples"}
	api := func(service string, verbs ...string) (paths []string) {
		for _, v := range verbs {
			paths = append(paths, "/gswitch.v1."+service+"/"+v)
		}
		return paths
	}
	var pages []*page
	daemon := func(name, program string, changes []string, args ...string) {
		at := freePort(t)
		d := launchProgram(t, program, filepath.Join(t.TempDir(), "sock"), append(args, "--listen", at)...)
		d.await()
		pages = append(pages, &page{name, at, d.Process.Pid, "/metrics", changes})
	}
	wires := filepath.Join(t.TempDir(), "wires.yaml")
	write(t, wires, "version: 1\nswitches: [{name: w1, ports: [{name: a, wire: w}]}, {name: w2, ports: [{name: a, wire: w}]}]\n")
	daemon("gswitch run", gswitch, api("Control", "Apply", "Edit", "ClearCounters", "FlushFDB", "PlanClock", "Record", "Capture", "ListPorts", "GetConfig"), "-c", wires)
	daemon("ghost run", ghost, api("Host", "Apply", "Transfer", "Serve", "Capture", "GetConfig"), "--netns", n.hosts[1].ns, "--port", "eth0", "--addr", "10.0.0.9/24")
	bumps := filepath.Join(t.TempDir(), "bump.yaml")
	write(t, bumps, n.document(0, ""))
	daemon("ghost run of a bump", ghost, api("Transparent", "Apply", "ListChannels"), "-c", bumps)

	collects, reports, metrics := freePort(t), freePort(t), freePort(t)
	data := t.TempDir()
	c := began(t, "ready", exec.Command(gcollect, "run", "--data", data, "--fabric", fabric, "--metrics", collects, "--reports", reports))
	pages = append(pages, &page{"gcollect run", collects, c.Process.Pid, "/metrics", []string{"/", "/metrics", "/api"}})
	c = began(t, "ready", exec.Command(gcollect, "clock", "run", "--data", data, "--fabric", fabric, "--sockets", t.TempDir(), "--metrics", metrics))
	pages = append(pages, &page{"gcollect clock run", metrics, c.Process.Pid, "/metrics", []string{"/", "/metrics", "/api"}})
	site := freePort(t)
	c = began(t, "open http", exec.Command(gfabric, "serve", "--scenario", "../scenarios/quickstart.yaml", "--listen", site))
	pages = append(pages, &page{"gfabric serve", site, c.Process.Pid, "/api/layout", looks})
	site = freePort(t)
	c = began(t, "open http", runs(t, "--serve", site))
	pages = append(pages, &page{"gfabric run --serve", site, c.Process.Pid, "/api/layout", looks})
	site = freePort(t)
	c = began(t, "open http", exec.Command(gfabric, "replay", recorded(t, wires), "--serve", site))
	pages = append(pages, &page{"gfabric replay --serve", site, c.Process.Pid, "/api/layout", looks})

	// The queue of a sweep, of which no worker of this machine takes a task.
	queue, token := freePort(t), filepath.Join(t.TempDir(), "token")
	write(t, token, "a token of this test\n")
	sweeping := exec.Command(gfabric, "sweep", "../scenarios/quickstart.yaml", "--short", "--workers", "0", "--listen", queue, "--token-file", token, "--out", t.TempDir())
	if err := sweeping.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sweeping.Process.Signal(syscall.SIGTERM)
		sweeping.Wait()
	})
	eventually(t, "the queue of a sweep listens", func() error {
		nc, err := natsserver.Dial("nats://"+queue, "test", natsserver.Login{Token: token})
		if err == nil {
			nc.Close()
		}
		return err
	})
	for _, o := range [][]nats.Option{nil, {nats.Token("another")}, {nats.UserInfo("a", "token of this test")}} {
		if nc, err := nats.Connect("nats://"+queue, o...); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("the queue of a sweep without its token: %v, %v", nc, err)
		}
	}
	// The one of a sweep that does not listen has a token that is drawn, and is for this machine.
	inside := exec.Command(gfabric, "sweep", "../scenarios/quickstart.yaml", "--short", "--workers", "1", "--set", "duration=10s", "--set", "workload.burst.size=4GB", "--out", t.TempDir())
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		inside.Process.Signal(syscall.SIGTERM)
		inside.Wait()
	})
	var at []netip.AddrPort
	eventually(t, "the queue of a sweep listens on this machine", func() error {
		if at = listening(t, inside.Process.Pid); len(at) == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	for _, a := range at {
		if !a.Addr().IsLoopback() {
			t.Errorf("gfabric sweep without --listen listens at %v", a)
		}
		if nc, err := nats.Connect("nats://" + a.String()); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("the queue within gfabric sweep without its token: %v, %v", nc, err)
		}
	}

	// Tests of traffic are a protocol of their own.
	traffic := freePort(t)
	tests := &page{name: "gfabric load serve", at: traffic}
	tests.pid = began(t, "ready", exec.Command(gfabric, "load", "serve", "--listen", traffic)).Process.Pid

	slow := map[*page][]net.Conn{}
	for _, p := range pages {
		// Connections that send a part of a request, or nothing, and then no more.
		for _, say := range []string{"", "GET " + p.reads + " HTTP/1.1\r\nHost: localhost\r\nX: "} {
			conn, err := net.Dial("tcp", p.at)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, say)
			slow[p] = append(slow[p], conn)
		}
		for _, host := range []string{p.at, "localhost"} {
			if code, _, body := p.asking(t, "GET", p.reads, host, nil); code != 200 {
				t.Errorf("%s: %s for %s: %d %s", p.name, p.reads, host, code, body)
			}
		}
		for _, host := range []string{"rebound.example", "127.0.0.1.rebound.example:80"} {
			if code, _, body := p.asking(t, "GET", p.reads, host, nil); code != http.StatusMisdirectedRequest && code != http.StatusForbidden {
				t.Errorf("%s: %s for %s: %d %.200s", p.name, p.reads, host, code, body)
			}
		}
		for _, path := range p.changes {
			for _, kind := range []string{"application/json", "text/plain", "application/x-www-form-urlencoded"} {
				for _, method := range []string{"POST", "PUT", "OPTIONS"} {
					code, h, body := p.asking(t, method, path, p.at, http.Header{"Origin": {"http://evil.example"}, "Content-Type": {kind}, "Connect-Protocol-Version": {"1"}})
					if code < 400 || h.Get("Access-Control-Allow-Origin") != "" {
						t.Errorf("%s: %s %s of another page: %d %.200s", p.name, method, path, code, body)
					}
				}
			}
		}
	}

	// place is for clients of tests of traffic, of which there may be 512.
	const places = 512
	for _, p := range append(pages, tests) {
		before := p.open(t)
		var held []net.Conn
		for range 3000 {
			conn, err := net.Dial("tcp", p.at)
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			held = append(held, conn)
		}
		// The last of them is closed at once: those before it were taken, or closed.
		if _, err := io.Copy(io.Discard, held[len(held)-1]); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", p.name, err)
		}
		if now, most := p.open(t), before+200; p != tests && now > most || now > most+places {
			t.Errorf("%s holds %d files of 3000 that say nothing, %d before", p.name, now, before)
		}
		for _, conn := range held {
			conn.Close()
		}
		eventually(t, p.name+" answers again", func() error {
			if p == tests {
				return exec.Command(gfabric, "load", "stream", p.at, "--bytes", "1000", "--time", "10s").Run()
			}
			a, err := http.Get("http://" + p.at + p.reads)
			if err != nil {
				return err
			}
			a.Body.Close()
			return nil
		})
	}

	// Reports are a protocol of their own, of which nothing was sent.
	var silent []net.Conn
	for range 3000 {
		conn, err := net.Dial("tcp", reports)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent = append(silent, conn)
	}
	server, err := natsserver.Find(data)
	if err != nil {
		t.Fatal(err)
	}
	if nc, err := nats.Connect(server.URL); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("the NATS server without its token: %v, %v", nc, err)
	}
	for _, conn := range silent {
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a silent connection of an exporter: %v", err)
		}
	}
	for p, conns := range slow {
		for _, conn := range conns {
			if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: a slow client: %v", p.name, err)
			}
		}
	}
	if code, _, _ := pages[3].asking(t, "GET", "/healthz", collects, nil); code != 200 {
		t.Errorf("gcollect is not well afterwards: %d", code)
	}
}
