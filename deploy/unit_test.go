package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// exposure is what systemd-analyze security gives the units at most, times ten.
const exposure = "30"

// An attacker who breaks into a daemon has no more than its unit says: a user of its own,
// five capabilities, the system calls of a service and three more.
func TestUnitExposure(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	for _, program := range []string{"gswitch", "ghost", "gcollect"} {
		out, err := exec.Command(analyze, "security", "--no-pager", "--offline=yes", "--threshold="+exposure, unitFile(program)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
		user, err := os.ReadFile("systemd/" + program + ".conf")
		if err != nil {
			t.Fatal(err)
		}
		if s := unit(t, program, "Service"); !regexp.MustCompile(`(?m)^u `+s["User"][0]+` `).Match(user) || s["User"][0] != s["Group"][0] {
			t.Errorf("%s runs as %v of %v, which sysusers.d does not make:\n%s", program, s["User"], s["Group"], user)
		}
	}
}

// Switches and hosts may read the clocks of NICs, and no more of them: the units let them
// through, in a group that sysusers.d makes and that udev gives the clocks to.
func TestUnitsReadClocksOfNICs(t *testing.T) {
	rules, err := os.ReadFile("systemd/gswitch.rules")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?m)^SUBSYSTEM=="ptp", GROUP="(\w+)", MODE="0640"$`).FindSubmatch(rules)
	if rule == nil {
		t.Fatalf("no group may read clocks:\n%s", rules)
	}
	_, none := exec.LookPath("systemd-sysusers")
	for _, program := range []string{"gswitch", "ghost"} {
		s := unit(t, program, "Service")
		if !slices.Contains(s["DeviceAllow"], "char-ptp r") || !slices.Equal(s["DevicePolicy"], []string{"closed"}) || len(s["PrivateDevices"]) != 0 || !slices.Equal(s["SupplementaryGroups"], []string{string(rule[1])}) {
			t.Errorf("%s: devices %q of policy %q, private %q, groups %q; clocks are of group %s", program, s["DeviceAllow"], s["DevicePolicy"], s["PrivateDevices"], s["SupplementaryGroups"], rule[1])
		}
		text, err := os.ReadFile("systemd/" + program + ".conf")
		root := t.TempDir() // each without the other
		folder := filepath.Join(root, "usr/lib/sysusers.d")
		if err := errors.Join(err, os.MkdirAll(folder, 0o755), os.Mkdir(filepath.Join(root, "etc"), 0o755), os.WriteFile(filepath.Join(folder, program+".conf"), text, 0o644)); err != nil {
			t.Fatal(err)
		}
		if none != nil {
			continue
		}
		command(t, "systemd-sysusers", "--root="+root, program+".conf")
		groups, err := os.ReadFile(filepath.Join(root, "etc/group"))
		if err != nil || !regexp.MustCompile(`(?m)^`+string(rule[1])+`:`).Match(groups) {
			t.Errorf("%s: %v\n%s", program, err, groups)
		}
	}
}

// Each daemon runs as a user without any right but its unit's capabilities, and makes no
// system call that the unit's filter refuses.
func TestRunsAsUnit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	need(t, "ip", "setpriv", "strace", "systemd-analyze")
	for program, c := range map[string]struct {
		args    []string // FILE and RUN are the configuration and a directory of its own
		must    []string // among the calls that it makes
		refused string   // a call that it makes and that the filter refuses, without harm
	}{
		"gswitch": {[]string{"run", "-c", "FILE", "--socket", "RUN/s.sock"}, []string{"bpf", "socket", "setsockopt", "mmap"}, ""},
		"ghost":   {[]string{"run", "--port", "va", "--addr", "10.0.0.1/24", "--serve", "--socket", "RUN/s.sock"}, []string{"bpf", "socket", "setsockopt", "mmap"}, ""},
		"gcollect": {[]string{"run", "--data", "RUN/data", "--reports", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--gre", "0.0.0.0"}, []string{"socket", "flock", "fsync", "mmap"},
			"bpf"}, // github.com/cilium/ebpf/rlimit looks at its start how the kernel counts memory
	} {
		t.Run(program, func(t *testing.T) { runsAsUnit(t, program, c.args, c.must, c.refused) })
	}
}

func runsAsUnit(t *testing.T, program string, args, must []string, refused string) {
	space, binary, file := asUser(t, program)
	dir := filepath.Dir(binary)
	calls := filepath.Join(dir, "calls")
	var caps, bounds string
	for c := range strings.FieldsSeq(unit(t, program, "Service")["CapabilityBoundingSet"][0]) {
		caps += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	bounds, caps = "-all"+caps, caps[1:]
	words := []string{"netns", "exec", space, "strace", "-f", "-qq", "-o", calls}
	if refused != "" {
		words = append(words, "-e", "inject="+refused+":error=EPERM")
	}
	words = append(words, "setpriv", fmt.Sprint("--reuid=", user), fmt.Sprint("--regid=", user), "--clear-groups", "--no-new-privs", "--inh-caps="+caps, "--ambient-caps="+caps, "--bounding-set="+bounds, binary)
	for _, a := range args {
		words = append(words, strings.NewReplacer("FILE", file, "RUN", filepath.Join(dir, "run")).Replace(a))
	}
	p := start(t, "ip", words...)
	await(t, program+" is ready", func() error {
		p.alive(t)
		if out := p.out.String(); !strings.Contains(out, "ready") {
			return errors.New(out)
		}
		return nil
	})
	unix.Kill(pidOf(t, binary), unix.SIGTERM)
	<-p.done
	if !p.cmd.ProcessState.Success() {
		t.Errorf("%v\n%s", p.cmd.ProcessState, p.out.String())
	}

	allowed := filter(t, unit(t, program, "Service")["SystemCallFilter"][0])
	log, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	_, own, ok := strings.Cut(string(log), "execve(\""+binary)
	if !ok {
		t.Fatalf("strace did not look:\n%s", log)
	}
	for _, m := range regexp.MustCompile(`(?m)^\d+ +(\w+)\(`).FindAllStringSubmatch(own, -1) {
		made[m[1]] = true
	}
	for _, call := range must {
		if !made[call] {
			t.Errorf("no %s among the calls that were seen", call)
		}
	}
	for call := range made {
		if !slices.Contains(allowed, call) && call != refused {
			t.Errorf("it calls %s, which the unit's filter refuses", call)
		}
	}
}

// user is nobody.
const user = 65534

// asUser makes a network namespace with two links, and copies a program and a
// configuration of a switch between them to where every user may read them. The
// directory run beside them is the user's.
func asUser(t *testing.T, name string) (space, binary, file string) {
	t.Helper()
	dir, err := os.MkdirTemp("", labPrefix+"user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	space = fmt.Sprintf("%suser-%d", labPrefix, os.Getpid())
	command(t, "ip", "netns", "add", space)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", space).Run() })
	for _, i := range []string{"va", "vb"} {
		command(t, "ip", "-n", space, "link", "add", "name", i, "type", "veth", "peer", "name", i+"1")
		command(t, "ip", "-n", space, "link", "set", i, "up")
		command(t, "ip", "-n", space, "link", "set", i+"1", "up")
	}
	command(t, "ip", "-n", space, "link", "set", "lo", "up")
	binary, file = filepath.Join(dir, name), filepath.Join(dir, "s.yaml")
	text, err := os.ReadFile(program(t, name))
	err = errors.Join(err, os.Chmod(dir, 0o755), os.WriteFile(binary, text, 0o755),
		os.WriteFile(file, []byte("version: 1\nswitches:\n  - name: s\n    ports:\n      - {name: a, interface: va}\n      - {name: b, interface: vb}\n"), 0o644),
		os.Mkdir(filepath.Join(dir, "run"), 0o755), os.Chown(filepath.Join(dir, "run"), user, user))
	if err != nil {
		t.Fatal(err)
	}
	return space, binary, file
}

// What the image holds runs as docker runs it: as a user without rights, which
// has the capabilities of --cap-add within reach and gets them by the program's
// file. Where one that it needs was not added it says so; where all are missing
// it still starts.
func TestRunsAsImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	need(t, "ip", "setpriv")
	space, binary, file := asUser(t, "gswitch")
	command(t, binary, "doctor", "--grant", binary)
	contained := func(caps string, words ...string) []string {
		return append([]string{"netns", "exec", space, "setpriv", fmt.Sprint("--reuid=", user), fmt.Sprint("--regid=", user), "--clear-groups",
			"--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all" + caps, binary}, words...)
	}
	socket := filepath.Join(filepath.Dir(binary), "run", "s.sock")
	daemon := []string{"run", "-c", file, "--socket", socket}
	p := start(t, "ip", contained(",+net_admin,+net_raw,+bpf,+perfmon,+ipc_lock", daemon...)...)
	await(t, "ports", func() error {
		p.alive(t)
		out, err := exec.Command("ip", contained("", "--socket", socket, "show", "ports")...).CombinedOutput()
		if err != nil || strings.Count(string(out), "native") != 2 {
			return fmt.Errorf("%v\n%s", err, out)
		}
		return nil
	})
	unix.Kill(pidOf(t, binary), unix.SIGTERM)
	<-p.done
	if out := p.out.String(); !p.cmd.ProcessState.Success() || strings.Contains(out, "not named") {
		t.Errorf("%v\n%s", p.cmd.ProcessState, out)
	}
	out, err := exec.Command("ip", contained(",+net_raw,+bpf", daemon...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "CAP_NET_ADMIN") {
		t.Errorf("without CAP_NET_ADMIN: %v\n%s", err, out)
	}
}

// filter returns the system calls that a SystemCallFilter allows.
func filter(t *testing.T, directive string) (calls []string) {
	for name := range strings.FieldsSeq(directive) {
		if !strings.HasPrefix(name, "@") {
			calls = append(calls, name)
			continue
		}
		for line := range strings.Lines(command(t, "systemd-analyze", "syscall-filter", name)) {
			if line = strings.TrimSpace(line); line != name && line != "" && line[0] != '#' {
				calls = append(calls, filter(t, line)...)
			}
		}
	}
	return calls
}

// pidOf returns the process that runs a program.
func pidOf(t *testing.T, binary string) int {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == binary {
			var pid int
			fmt.Sscanf(l, "/proc/%d/", &pid)
			return pid
		}
	}
	t.Fatalf("nothing runs %s", binary)
	return 0
}
