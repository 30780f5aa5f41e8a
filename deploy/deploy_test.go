// Package deploy_test checks that what this folder describes can be run: the
// image's only file is a static binary that works in an empty root, and the
// unit asks for what the program needs.
package deploy_test

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const dockerfile = "container/Dockerfile"

// image is what a stage of a Dockerfile FROM scratch says.
type image struct {
	from       string
	copies     [][2]string // from, to
	owners     []string    // of what is copied
	runs       [][]string
	entrypoint []string
	cmd        []string
	health     []string
	labels     string
	user       string
}

// readImages returns the stages of the Dockerfile by their names.
func readImages(t *testing.T) map[string]*image {
	t.Helper()
	f, err := os.Open(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	images, im := map[string]*image{}, &image{}
	for s := bufio.NewScanner(f); s.Scan(); {
		verb, rest, _ := strings.Cut(strings.TrimSpace(s.Text()), " ")
		switch verb {
		case "", "#":
		case "FROM":
			from, name, ok := strings.Cut(rest, " AS ")
			if !ok || images[name] != nil {
				t.Fatalf("FROM %s: want a stage with a name of its own", rest)
			}
			im = &image{from: from}
			images[name] = im
		case "COPY":
			w := strings.Fields(rest)
			owner, chown := strings.CutPrefix(w[0], "--chown=")
			if chown {
				w = w[1:]
			} else {
				owner = ""
			}
			if len(w) != 2 {
				t.Fatalf("COPY %s: want two paths", rest)
			}
			im.copies, im.owners = append(im.copies, [2]string{w[0], w[1]}), append(im.owners, owner)
		case "RUN":
			var words []string
			err = json.Unmarshal([]byte(rest), &words)
			im.runs = append(im.runs, words)
		case "ARG":
		case "LABEL":
			im.labels = rest
		case "USER":
			im.user = rest
		case "HEALTHCHECK":
			_, cmd, _ := strings.Cut(rest, " CMD ")
			err = json.Unmarshal([]byte(cmd), &im.health)
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &im.entrypoint)
		case "CMD":
			err = json.Unmarshal([]byte(rest), &im.cmd)
		default:
			t.Fatalf("%s: unexpected instruction %s", dockerfile, verb)
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", dockerfile, verb, err)
		}
	}
	return images
}

// staticBinary builds a command and returns its path, once it is sure that it
// needs nothing beside it.
func staticBinary(t *testing.T, name string) string {
	t.Helper()
	out := program(t, name)
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s asks for a dynamic loader", name)
		}
	}
	if libs, err := f.ImportedLibraries(); err == nil && len(libs) > 0 {
		t.Errorf("%s asks for %v", name, libs)
	}
	return out
}

func TestImages(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	ignore, err := os.ReadFile(dockerfile + ".dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	images := readImages(t)
	for _, name := range []string{"gswitch", "ghost", "gfabric"} {
		im := images[name]
		if im == nil || im.from != "scratch" || len(im.copies) == 0 || len(im.entrypoint) != 1 || im.entrypoint[0] != im.copies[0][1] || filepath.Base(im.copies[0][0]) != name {
			t.Fatalf("the image of %s is %+v; want its static binary FROM scratch", name, im)
		}
		if !strings.Contains(string(ignore), "\n!"+im.copies[0][0]+"\n") {
			t.Errorf("%s.dockerignore keeps %s from the builder", dockerfile, im.copies[0][0])
		}
		if !strings.Contains(im.labels, `licenses="Apache-2.0"`) || !strings.Contains(im.labels, `version="$VERSION"`) {
			t.Errorf("%s has the labels %s", name, im.labels)
		}
		if daemon := name != "gfabric"; daemon != (im.health != nil) || im.user != "65534:65534" {
			t.Errorf("%s: health is asked by %v, it runs as %q", name, im.health, im.user)
		} else if daemon && (len(im.runs) != 1 || len(im.copies) != 2 || im.copies[1] != [2]string{"bin/run", "/run/" + name} || im.owners[1] != im.user) {
			t.Errorf("%s: its file gets its capabilities by %v, its socket's directory is of %v", name, im.runs, im.owners)
		}
		t.Run(name, func(t *testing.T) { im.try(t, staticBinary(t, name)) })
	}
	if len(images) != 3 {
		t.Errorf("%d images", len(images))
	}
}

// try runs an image's program in an empty root.
func (im *image) try(t *testing.T, binary string) {
	root := t.TempDir()
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, im.copies[0][1]), data, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := exec.Command(im.entrypoint[0], args...)
		cmd.Dir = "/"
		cmd.Env = []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, words := range im.runs {
		if out, err := run(words[1:]...); err != nil || words[0] != im.entrypoint[0] {
			t.Errorf("%v: %v\n%s", words, err, out)
		}
	}
	if out, err := run("--help"); err != nil || !strings.Contains(out, im.cmd[0]) {
		t.Errorf("--help in an empty root: %v, must report %q\n%s", err, im.cmd[0], out)
	}
	if out, err := run("--version"); err != nil || !strings.Contains(out, "v9.9.9-test") {
		t.Errorf("--version in an empty root: %v\n%s", err, out)
	}
	// Its configuration is mounted when it is run; without, it must say so.
	if out, err := run(im.cmd...); err == nil || !strings.Contains(out, im.cmd[len(im.cmd)-1]) {
		t.Errorf("%v without its file: %v\n%s", im.cmd, err, out)
	}
	// Health is that a daemon answers; there is none here.
	if im.health != nil {
		if out, err := run(im.health[1:]...); err == nil || !strings.Contains(out, "no daemon runs") {
			t.Errorf("%v without a daemon: %v\n%s", im.health, err, out)
		}
	}
	// An empty root stays empty: the program wrote nothing beside itself.
	entries, _ := os.ReadDir(root)
	if len(entries) != 1 {
		t.Errorf("the root holds %v now", entries)
	}
}

// unitFile is the unit of a program: one for each instance, but for gcollect.
func unitFile(program string) string {
	if program == "gcollect" {
		return "systemd/gcollect.service"
	}
	return "systemd/" + program + "@.service"
}

// unit reads the directives of a section of the unit of a program.
func unit(t *testing.T, program, section string) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(unitFile(program))
	if err != nil {
		t.Fatal(err)
	}
	v, in := map[string][]string{}, ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			in = strings.Trim(line, "[]")
		default:
			key, val, ok := strings.Cut(line, "=")
			if !ok {
				t.Fatalf("not a directive: %s", line)
			}
			if in == section {
				v[key] = append(v[key], val)
			}
		}
	}
	return v
}

func TestUnit(t *testing.T) {
	s := unit(t, "gswitch", "Service")
	for key, want := range map[string]string{
		"Type": "notify", "LimitMEMLOCK": "infinity", "Restart": "on-failure", "RuntimeDirectory": "gswitch", "NoNewPrivileges": "yes",
		"ExecStart": "/usr/bin/gswitch run -c /etc/gswitch/%i.yaml --wait 30s",
	} {
		if len(s[key]) != 1 || s[key][0] != want {
			t.Errorf("%s=%v, want %s", key, s[key], want)
		}
	}
	// Waiting for an interface must not use up the starts that are allowed.
	u := unit(t, "gswitch", "Unit")
	if fmt.Sprint(u["StartLimitIntervalSec"], u["StartLimitBurst"]) != "[60] [10]" {
		t.Errorf("ten starts of 30 s each take longer than the limit's interval, but it is %v, %v", u["StartLimitIntervalSec"], u["StartLimitBurst"])
	}
	if len(s["ExecReload"]) != 2 {
		t.Errorf("ExecReload=%v, want a check and a signal", s["ExecReload"])
	}
	caps := strings.Fields(s["CapabilityBoundingSet"][0])
	if !slices.Equal(caps, strings.Fields(s["AmbientCapabilities"][0])) {
		t.Error("the bounding and the ambient capabilities differ")
	}
	// The container gets the same: by the command that starts it, not by what is said
	// beside it of an older docker.
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var added []string
	for line := range strings.Lines(string(readme)) {
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		for _, m := range regexp.MustCompile(`--cap-add (\w+)`).FindAllStringSubmatch(line, -1) {
			added = append(added, "CAP_"+m[1])
		}
	}
	if !slices.Equal(caps, added) {
		t.Errorf("the unit has %v, the container %v", caps, added)
	}
	if install := unit(t, "gswitch", "Install"); fmt.Sprint(install["WantedBy"]) != "[multi-user.target]" {
		t.Errorf("WantedBy=%v", install["WantedBy"])
	}
}

// A host's unit is that of a switch but for its names.
func TestGhostUnit(t *testing.T) {
	for _, section := range []string{"Unit", "Service", "Install"} {
		want, got := unit(t, "gswitch", section), unit(t, "ghost", section)
		delete(want, "TimeoutStartSec") // there is one interface to wait for
		delete(got, "TimeoutStartSec")
		if section == "Service" { // a switch makes twins of its ports, a host does not
			if allow := want["DeviceAllow"]; len(allow) == 0 || allow[0] != "/dev/net/tun rw" {
				t.Errorf("a switch has the devices %q", allow)
			} else {
				want["DeviceAllow"] = allow[1:]
			}
		}
		for key, values := range want {
			for i := range values {
				values[i] = strings.ReplaceAll(values[i], "gswitch", "ghost")
			}
			if !slices.Equal(values, got[key]) {
				t.Errorf("%s=%q, want %q", key, got[key], values)
			}
			delete(got, key)
		}
		if len(got) > 0 {
			t.Errorf("[%s] has %v besides", section, got)
		}
	}
}

// Where systemd is, it has the last word.
func TestUnitByAnalyze(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here: the units are checked by the tests above alone")
	}
	for _, program := range []string{"gswitch", "ghost"} {
		text, err := os.ReadFile("systemd/" + program + "@.service")
		if err != nil {
			t.Fatal(err)
		}
		me, _ := os.Executable() // verify fails unless the program is there
		file := filepath.Join(t.TempDir(), program+"@test.service")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/bin/"+program, me)), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	}
}
