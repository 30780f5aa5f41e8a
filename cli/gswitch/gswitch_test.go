package gswitch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// program is the path of the program under test, built once.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gswitch-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "gswitch")
	if out, err := exec.Command("go", "build", "-o", program, "gswitch/cmd/gswitch").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// invoke runs the program and returns what it printed and its exit code.
func invoke(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// daemon is a running gswitch.
type daemon struct {
	*exec.Cmd
	socket string
	log    bytes.Buffer
	ready  string
	rest   chan string // what it printed after the line with ready
}

// startDaemon returns when the daemon is ready.
func startDaemon(t *testing.T, socket string, args ...string) *daemon {
	t.Helper()
	d := &daemon{Cmd: exec.Command(program, append([]string{"run", "--socket", socket}, args...)...), socket: socket, rest: make(chan string, 1)}
	d.Stderr = &d.log
	out, err := d.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d.ProcessState == nil {
			d.Process.Kill()
			d.Wait()
		}
	})
	r := bufio.NewReader(out)
	if d.ready, err = r.ReadString('\n'); err != nil || !strings.Contains(d.ready, "ready") {
		d.Wait()
		t.Fatalf("no line with ready, but %q; log:\n%s", d.ready, d.log.String())
	}
	go func() { b, _ := io.ReadAll(r); d.rest <- string(b) }()
	return d
}

// stop ends the daemon by a signal and returns its exit code.
func (d *daemon) stop(t *testing.T, sig os.Signal) int {
	t.Helper()
	if err := d.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	rest := <-d.rest
	d.Wait()
	if strings.Contains(rest, "ready") {
		t.Errorf("ready a second time: %q", rest)
	}
	return d.ProcessState.ExitCode()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const loop = `version: 1
workers: [{poll: sleep}]
memory: {frames: 8192}
switches:
  - name: s1
    ports:
      - {name: p1, wire: a, address: [10.0.0.1/24], rate: 10Gbps, qos: fair}
      - {name: p2, wire: b, acl: edge}
    qos: {fair: {queues: [], rocc: {queues: [0], table: aged}, qcn: {queues: [1]}}}
    acls:
      edge:
        - {seq: 10, name: lab, match: {dst: 10.9.0.0/16}, action: drop}
    routes:
      - {prefix: 10.1.0.0/16, via: 10.0.0.2}
    neighbors:
      - {address: 10.0.0.2, mac: 02:00:00:00:00:02}
    fdb:
      static:
        - {mac: 02:00:00:00:00:07, port: p2}
    pfc: {classes: [3]}
    escape: {ports: [p2]}
  - name: s2
    ports:
      - {name: p1, wire: a}
      - {name: p2, wire: b}
`

func TestExitCodes(t *testing.T) {
	good := write(t, "good.yaml", loop)
	bad := write(t, "bad.yaml", strings.Replace(loop, "rate: 10Gbps", "rat: 10Gbps", 1))
	none := filepath.Join(t.TempDir(), "none.sock")
	const wire = `version: 1
switches:
  - name: s1
    ports:
      - {name: p1, wire: a, rate: %s}
      - {name: p2, wire: a}
    pfc: {classes: [3]}
    buffer: {lossless: {headroom: 1KB}}
`
	slow := write(t, "slow.yaml", fmt.Sprintf(wire, "0.5Mbps"))
	unsafe := write(t, "unsafe.yaml", fmt.Sprintf(wire, "10Gbps"))
	for _, tc := range []struct {
		args string
		code int
		want string // in what is printed
	}{
		{"--help", 0, "gswitch run --port eth1"},
		{"--version", 0, "gswitch "},
		{"run --help", 0, "One line with the word ready"},
		{"completion bash", 0, "complete"},
		{"schema", 0, `"$schema"`},
		{"validate " + good, 0, "good.yaml: ok (2 switches, 4 ports)"},
		{"validate " + bad, 2, `bad.yaml:7:53: switches[0].ports[0].rat: unknown key; did you mean "rate"?`},
		{"validate " + slow, 2, "slow.yaml:5:35: switches[0].ports[0].rate: 500kbps is less than 1Mbps, the slowest link"},
		{"validate " + unsafe, 2, "unsafe.yaml:8:35: switches[0].buffer.lossless.headroom: port p1, class 3: headroom of 1000 B is not safe"},
		{"validate " + write(t, "unused.yaml", strings.Replace(loop, "    qos: {fair: ", "    qos: {idle: {}, fair: ", 1)), 0, "no port uses this profile"},
		{"validate", 2, "missing: FILE"},
		{"validate nosuch.yaml", 2, "no such file"},
		{"run", 2, "Give a file with -c, or interfaces with --port"},
		{"run -c " + bad, 2, "unknown key"},
		{"run -c " + good + " --poll spin", 2, "--poll does not go with -c"},
		{"run --port e1 --poll fast", 2, `gswitch: --poll: "fast" is not one of spin, adaptive, sleep`},
		{"run --port e1 --mode foo", 2, `gswitch: --mode: "foo" is not one of`},
		{"version", 0, "gswitch "},
		{"run --port e1 --port e1", 2, "e1 is taken by"},
		{"run --nope", 2, "unknown flag: --nope"},
		{"nope", 2, `unknown command "nope"`},
		{"show", 2, "There are acl, buffer"},
		{"show nope", 2, `has no "nope"`},
		{"apply", 2, "apply what?"},
		{"apply -f " + bad, 2, "unknown key"},
		{"set port p1", 2, "set what?"},
		{"add route 10.0.0.0/8 over there", 2, "write via ADDRESS"},
		{"capture", 2, "capture where?"},
		{"--socket " + none + " show ports", 1, "no daemon listens at " + none},
		{"--socket " + none + " apply -f " + good, 1, "no daemon listens at " + none},
	} {
		out, errs, code := invoke(t, "", strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(out+errs, tc.want) {
			t.Errorf("gswitch %s: exit code %d, want %d with %q:\n%s%s", tc.args, code, tc.code, tc.want, out, errs)
		}
	}
}

func TestVerbs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s1.sock")
	file := write(t, "loop.yaml", loop)
	d := startDaemon(t, socket, "-c", file)
	if want := fmt.Sprintf("ready: s1 (2 ports), s2 (2 ports); control socket %s\n", socket); d.ready != want {
		t.Errorf("%q, want %q", d.ready, want)
	}
	next := write(t, "next.yaml", strings.Replace(loop, "rate: 10Gbps", "rate: 25Gbps", 1))
	refused := filepath.Join(t.TempDir(), "refused.pcapng")
	broken := strings.Replace(loop, "via: 10.0.0.2", "via: 10.7.0.2", 1)
	for _, tc := range []struct {
		args, stdin string
		code        int
		want        string
	}{
		{"show ports", "", 0, `
PORT   ON      MODE       RATE  RX FRAMES  TX FRAMES  DROPS  STATE
s1/p1  wire a  -        10Gbps          0          0      0  up
s1/p2  wire b  -     unlimited          0          0      0  up
s2/p1  wire a  -     unlimited          0          0      0  up
s2/p2  wire b  -     unlimited          0          0      0  up
`},
		{"show ports nosuch", "", 1, `
gswitch: there is no port "nosuch"; there are s1/p1, s1/p2, s2/p1, s2/p2
`},
		{"show fdb -S nosuch", "", 1, `
gswitch: there is no switch "nosuch"; there are s1, s2
`},
		{"clear fdb -S nosuch", "", 1, `
gswitch: there is no switch "nosuch"; there are s1, s2
`},
		{"show fdb -S s1", "", 0, `
VLAN  MAC                PORT  TYPE    AGE
   1  02:00:00:00:00:07  p2    static    -
1 of 65536
`},
		{"show acl", "", 0, `
LIST  SEQ  NAME  FRAMES  BYTES  RULE
edge   10  lab        0      0  {match: {dst: 10.9.0.0/16}, action: drop}
`},
		{"show neighbors", "", 0, `
ADDRESS   MAC                INTERFACE  STATE
10.0.0.2  02:00:00:00:00:02  p1         static
`},
		{"show pfc s1/p1", "", 0, `
PORT  CLASS  RX XOFF  RX XON  TX XOFF  TX XON  PAUSED S  ASKED S  STORMS  NOW
p1        3        0       0        0       0     0.000    0.000       0  -
`},
		{"show rocc", "", 0, `
PORT  QUEUE  COUNTER            VALUE
p1        0  fair rate         10Gbps
p1        0  waiting               0B
p1        0  reference          150kB
p1        0  flows                  0
p1        0  updates tuned          0
p1        0  updates halved         0
p1        0  updates cut            0
p1        0  notices sent           0
p1        0  notices unsent         0
p1        0  untracked frames       0
`},
		{"show qcn", "", 0, `
PORT  QUEUE  WAITING  SET POINT  SAMPLES  MESSAGES SENT  MESSAGES UNSENT  MESSAGES NO-SENDER
p1        1       0B       26kB        0              0                0                   0
`},
		{"show escape p2", "", 0, `
PORT  COUNTER             VALUE
p2    on                      1
p2    flows                   0
p2    places free            64
p2    places kept             0
p2    places taken            0
p2    places parked           0
p2    tokens made             0
p2    tokens forwarded        0
p2    tokens hit              0
p2    tokens dropped          0
p2    tokens reclaimed        0
p2    requests asked          0
p2    requests requested      0
p2    requests refused        0
p2    packets arrived         0
p2    packets stray           0
p2    packets unmarked        0
p2    packets unknown         0
`},
		{"show lldp", "", 0, `
nothing: lldp of the switch turns it on
`},
		{"show drops", "", 0, `
no drops
`},
		{"apply -f " + next + " --dry-run", "", 0, `
~ switches[s1].ports[p1].rate: 10Gbps -> 25Gbps
~ switches[s1].buffer.lossless.response: 1250us -> 625us
nothing was changed (dry run)
`},
		{"apply -f " + next, "", 0, `
~ switches[s1].ports[p1].rate: 10Gbps -> 25Gbps
~ switches[s1].buffer.lossless.response: 1250us -> 625us
applied (generation 2)
`},
		{"apply -f " + next, "", 0, `
nothing changes
`},
		{"apply -f -", broken, 2, `
gswitch: -:14:36: switches[0].routes[0].via: 10.7.0.2 is on no network of this switch: no port and no VLAN has an address there
`},
		{"add route 10.3.0.0/16 via 10.0.0.3 weight 2 via 10.0.0.4 choose scatter -S s1", "", 0, `
+ switches[s1].routes[10.3.0.0/16]: {prefix: 10.3.0.0/16, next_hops: [{via: 10.0.0.3, weight: 2}, {via: 10.0.0.4, weight: 1}], choose: scatter}
applied (generation 3)
`},
		{"show paths", "", 0, `
CHOOSE   ROUTES  NEXT HOP  PORT  WEIGHT  WAITING
scatter       1  10.0.0.3  p1         2      0 B
                 10.0.0.4  p1         1      0 B
`},
		{"add route 10.5.0.0/16 via 10.0.0.3 via 10.0.0.4 choose adaptive -S s1", "", 2, `
gswitch: switches[0].routes[2].next_hops[1].via: 10.0.0.4 and 10.0.0.3 are both behind port p1, and choose: adaptive looks at ports; leave one of them out, or choose otherwise
`},
		{"del route 10.1.0.0/16 -S s1", "", 0, `
- switches[s1].routes[10.1.0.0/16]: {prefix: 10.1.0.0/16, via: 10.0.0.2}
applied (generation 4)
`},
		{"del route 10.1.0.0/16 -S s1", "", 1, `
gswitch: routes: there is no static entry 10.1.0.0/16
`},
		{"set port p2 --disable -S s2", "", 0, `
~ switches[s2].ports[p2].enabled: true -> false
applied (generation 5)
`},
		{"add fdb 02:00:00:00:00:08 p2 vlan 1 -S s1", "", 0, `
+ switches[s1].fdb.static[02:00:00:00:00:08/1]: {mac: 02:00:00:00:00:08, vlan: 1, port: p2}
applied (generation 6)
`},
		{"add fdb 02:00:00:00:00:08 p1 -S s1", "", 1, `
gswitch: fdb: 02:00:00:00:00:08/1 is there already; replace it with set
`},
		{"set fdb 02:00:00:00:00:08 p1 -S s1", "", 0, `
~ switches[s1].fdb.static[02:00:00:00:00:08/1].port: p2 -> p1
applied (generation 7)
`},
		{"add fdb 02:00:00:00:00:0x p2 -S s1", "", 2, `
gswitch: mac: "02:00:00:00:00:0x" is not a MAC address; write 02:00:00:00:00:01
`},
		{"capture -w " + refused + " no such filter", "", 2, ""},
		{"clear counters", "", 0, "\n"},
		{"clear fdb", "", 0, `
0 removed
`},
	} {
		out, errs, code := invoke(t, tc.stdin, append([]string{"--socket", socket}, strings.Fields(tc.args)...)...)
		if tc.want == "" {
			tc.want = out + errs
		}
		if d := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), out+errs); d != "" || code != tc.code {
			t.Errorf("gswitch %s: exit code %d, want %d (-want +got)\n%s", tc.args, code, tc.code, d)
		}
	}

	for _, verb := range []string{"ports", "queues", "fdb", "routes", "paths", "neighbors", "acl", "buffer", "pfc", "workers", "drops", "deadlock", "pauses", "escape", "export", "config", "version"} {
		out, errs, code := invoke(t, "", "--socket", socket, "show", verb)
		for line := range strings.Lines(out) {
			if len(line) > 81 && verb != "config" {
				t.Errorf("show %s: a line of %d columns: %s", verb, len(line), line)
			}
		}
		out, errs2, code2 := invoke(t, "", "--socket", socket, "show", verb, "--json")
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || code2 != 0 {
			t.Errorf("show %s: %v\n%s%s%s", verb, err, out, errs, errs2)
		}
	}
	for args, code := range map[string]int{"clear counters": 0, "clear fdb": 0, "doctor": 0, "validate " + file: 0, "validate " + write(t, "broken.yaml", broken): 2,
		"set port p1 --rate 1Gbps -S s1 ": 0, "apply --dry-run -f " + file: 0} {
		out, errs, got := invoke(t, "", append([]string{"--json", "--socket", socket}, strings.Fields(args)...)...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil || got != code && args != "doctor" {
			t.Errorf("%s --json: exit code %d, want %d, %v\n%s%s", args, got, code, err, out, errs)
		}
		if code == 2 && (v["ok"] != false || v["errors"].([]any)[0].(map[string]any)["key"] != "switches[0].routes[0].via") {
			t.Errorf("%s --json: %s", args, out)
		}
	}
	out, _, code := invoke(t, "", "--socket", socket, "watch", "-n", "1", "-i", "50ms")
	if !strings.HasPrefix(out, "PORT   RX PPS") || strings.Count(out, "\n") != 6 || code != 0 {
		t.Errorf("watch: %d\n%s", code, out)
	}

	if _, err := os.Stat(refused); !os.IsNotExist(err) {
		t.Errorf("a refused capture leaves a file: %v", err)
	}

	// The running document, saved, is a document.
	out, _, _ = invoke(t, "", "--socket", socket, "show", "config")
	if _, errs, code := invoke(t, "", "validate", write(t, "saved.yaml", out)); code != 0 {
		t.Errorf("show config prints what validate refuses:\n%s", errs)
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d after SIGTERM; log:\n%s", code, d.log.String())
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

// A feature that is on at no port says why, and not how to turn it on.
func TestShowSaysWhyNothingIsShown(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	const routes = `version: 1
workers: [{poll: sleep}]
memory: {frames: 8192}
switches:
  - name: s1
    loops: {}
    ports:
      - {name: p1, wire: a, address: [10.0.0.1/24]}
      - {name: p2, wire: a, address: [10.0.1.1/24]}
`
	startDaemon(t, socket, "-c", write(t, "routes.yaml", routes))
	for args, want := range map[string]string{
		"show loops": "nothing: loops is on, but none of these ports is watched: those with an address route, and its list ports may leave out others\n",
		"show lldp":  "nothing: lldp of the switch turns it on\n",
	} {
		if out, errs, code := invoke(t, "", append([]string{"--socket", socket}, strings.Fields(args)...)...); out != want || code != 0 {
			t.Errorf("%s: exit code %d, %q %s", args, code, out, errs)
		}
	}
}

func TestSecondDaemonAndKill(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s1.sock")
	file := write(t, "loop.yaml", loop)
	d := startDaemon(t, socket, "-c", file)
	if _, errs, code := invoke(t, "", "run", "--socket", socket, "-c", file); code != 1 || !strings.Contains(errs, fmt.Sprintf("another daemon listens there (process %d); this one needs another name", d.Process.Pid)) {
		t.Errorf("second daemon: %d %s", code, errs)
	}
	if code := d.stop(t, unix.SIGKILL); code != -1 {
		t.Errorf("exit code %d after SIGKILL", code)
	}
	if _, err := os.Stat(socket); err != nil {
		t.Errorf("a killed daemon cannot remove its socket: %v", err)
	}
	d = startDaemon(t, socket, "-c", file)
	if _, errs, code := invoke(t, "", "--socket", socket, "show", "ports"); code != 0 {
		t.Error(errs)
	}
	if code := d.stop(t, unix.SIGINT); code != 0 {
		t.Errorf("exit code %d after SIGINT", code)
	}
}

// A daemon that is stopped keeps no client waiting.
func TestDaemonThatDoesNotAnswer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s1.sock")
	d := startDaemon(t, socket, "-c", write(t, "loop.yaml", loop))
	if err := d.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("the daemon at %s (process %d) does not answer", socket, d.Process.Pid)
	verbs := [][]string{{"show", "ports"}, {"watch"}, {"capture", "-w", "-"}}
	got := make(chan string)
	for _, v := range verbs {
		go func() {
			out, err := exec.Command(program, append([]string{"--socket", socket}, v...)...).CombinedOutput()
			got <- fmt.Sprint(v, " ", err, " ", string(out))
		}()
	}
	for range verbs {
		if s := <-got; !strings.Contains(s, "exit status 1") || !strings.Contains(s, want) {
			t.Errorf("%s; want %q", s, want)
		}
	}
	if err := d.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, d.log.String())
	}
}

// A reload logs what it changed, and each mistake on a line of its own.
func TestReloadIsLogged(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s1.sock")
	file := write(t, "loop.yaml", loop)
	d := startDaemon(t, socket, "-c", file)
	for _, text := range []string{
		strings.Replace(loop, "rate: 10Gbps", "rate: 25Gbps", 1),
		strings.Replace(strings.Replace(loop, "rate: 10Gbps", "rat: 1Gbps", 1), "version: 1", "version: 1\nnope: 2", 1),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		before, _, _ := invoke(t, "", "--socket", socket, "show", "config")
		if err := d.Process.Signal(unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		// A signal has no answer: the rate shows that the first was taken.
		for strings.Contains(text, "25Gbps") {
			if after, _, _ := invoke(t, "", "--socket", socket, "show", "config"); after != before {
				break
			}
		}
	}
	// The second was taken up when nothing more comes before the end.
	for success := true; success; {
		success = !strings.Contains(scrape(t, socket), "gswitch_config_last_reload_success 0")
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	log := d.log.String()
	for _, want := range []string{`level=INFO msg=changed what="~ switches[s1].ports[p1].rate: 10Gbps -> 25Gbps"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	if n := strings.Count(log, "level=ERROR"); n != 2 {
		t.Errorf("%d errors logged for two mistakes:\n%s", n, log)
	}
}
