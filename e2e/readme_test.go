package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric/web/webtest"
)

// The first hour by the README's own commands: what is indented there is what
// runs here.

// readme returns the commands of a section of the README, without sudo and
// comments, and its first YAML document.
func readme(t *testing.T, section string) (commands []string, document string) {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("the README has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	if _, after, ok := strings.Cut(rest, "```yaml\n"); ok {
		document, _, _ = strings.Cut(after, "```")
	}
	for line := range strings.Lines(rest) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			command, _, _ = strings.Cut(command, " #")
			commands = append(commands, strings.TrimPrefix(strings.TrimSpace(command), "sudo "))
		}
	}
	if len(commands) == 0 {
		t.Fatalf("section %q has no commands", section)
	}
	return commands, document
}

// checkout is a folder as a clone is after make build: bin/, scenarios/.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	scenarios, err := filepath.Abs("../scenarios")
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"bin/gswitch": gswitch, "bin/gfabric": gfabric, "bin/ghost": ghost, "scenarios": scenarios} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shell runs a command in a checkout.
func shell(t *testing.T, dir, command string) string {
	t.Helper()
	c := exec.Command("sh", "-c", command)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// A student: no root, a scenario, its report, its drawings.
func TestReadmeScenario(t *testing.T) {
	dir := checkout(t)
	ran := 0
	first, _ := readme(t, "First success")
	figures, _ := readme(t, "A paper's figure")
	for _, command := range append(first, figures...) {
		switch {
		case !strings.HasPrefix(command, "bin/gfabric "): // make; what needs root is for others
		case strings.Contains(command, "fig2.13"): // minutes
		case strings.HasPrefix(command, "bin/gfabric ns3"): // inputs of a simulator
		case strings.Contains(command, "--netns") || strings.Contains(command, " fit ") || strings.Contains(command, "--on netns"):
		case strings.Contains(command, " compare "):
			shell(t, dir, "cp -r results/quickstart other && "+command)
			ran++
		default:
			shell(t, dir, command)
			ran++
		}
	}
	for _, file := range []string{"results/quickstart/report.html", "results/quickstart/values.csv", "figures/cdf-queue_bytes.svg", "figures/cdf-queue_bytes.pdf"} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if ran < 5 {
		t.Errorf("only %d commands ran: this test reads the README wrongly", ran)
	}
	t.Run("report", func(t *testing.T) { lookAtReport(t, filepath.Join(dir, "results/quickstart")) })
}

// lookAtReport opens the page of results in a browser: its drawings are there and as
// wide as the page lets them, and the browser complains of nothing.
func lookAtReport(t *testing.T, dir string) {
	b := webtest.Start(t)
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }) // that browsers ask for
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, v := range []struct {
		name string
		webtest.View
	}{{"light", webtest.View{Width: 1280, Height: 900}}, {"dark", webtest.View{Width: 1280, Height: 900, Dark: true}}, {"small", webtest.View{Width: 390, Height: 844}}} {
		p := b.Open(server.URL+"/report.html", v.View)
		p.Wait(`document.readyState === "complete"`)
		var seen struct {
			Title            string
			Drawings, Tables int
			Wide             bool
		}
		p.Eval(`({Title: document.title, Drawings: [...document.querySelectorAll("svg")].filter((s) => s.getBoundingClientRect().width > 100).length,
			Tables: document.querySelectorAll("table").length, Wide: document.documentElement.scrollWidth > innerWidth})`, &seen)
		if seen.Title == "" || seen.Drawings < 2 || seen.Tables == 0 || seen.Wide {
			t.Errorf("%s: %+v", v.name, seen)
		}
		p.Screenshot(t, "report-"+v.name+".png")
		if e := p.Errors(); len(e) > 0 {
			t.Errorf("%s: the page complains: %q", v.name, e)
		}
	}
}

// An engineer: a fabric of namespaces comes up, its hosts reach each other, and
// it goes.
func TestReadmeFabric(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for network namespaces and AF_XDP sockets")
	}
	dir, ran := checkout(t), 0
	commands, _ := readme(t, "A fabric on one machine")
	// Under a name of its own, so that no fabric of the machine is touched.
	name := fmt.Sprintf("readme-%d", os.Getpid())
	t.Cleanup(func() { exec.Command(gfabric, "down", name).Run() })
	named := strings.NewReplacer(" up ", " up --name "+name+" ", " exec ", " exec --name "+name+" ", " status", " status --name "+name, "gfabric down", "gfabric down "+name)
	for _, command := range commands {
		command = named.Replace(command)
		switch {
		case strings.Contains(command, " serve"): // until Ctrl-C
		case strings.Contains(command, "ring"): // the second fabric, with an address that may be taken
		case strings.Contains(command, "-- ping "):
			// ping need not be there; gfabric has one.
			shell(t, dir, strings.Replace(strings.Replace(command, "-- ping ", "-- bin/gfabric load ping ", 1), " -c ", " --count ", 1))
			ran++
		default:
			shell(t, dir, command)
			ran++
		}
	}
	if ran < 4 {
		t.Errorf("only %d commands ran: this test reads the README wrongly", ran)
	}
}

// An operator: a switch over two interfaces, and what shows it; the file is
// valid.
func TestReadmeSwitch(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	dir, ran := checkout(t), 0
	commands, document := readme(t, "A switch over your interfaces")
	for from, to := range map[string]string{"eth1": "d0", "eth2": "d1"} {
		document = strings.ReplaceAll(document, "interface: "+from, "interface: "+to+", netns: "+l.sw)
	}
	write(t, filepath.Join(dir, "s1.yaml"), document)
	socket := filepath.Join(dir, "s.sock")
	var d *daemon
	for _, command := range commands {
		command = strings.NewReplacer("eth1", "d0", "eth2", "d1").Replace(command)
		command, _, _ = strings.Cut(command, " |") // jq and tshark need not be there
		words := strings.Fields(command)
		switch {
		case len(words) < 2 || words[0] != "bin/gswitch":
		case words[1] == "run" && words[2] == "--port":
			d = launchProgram(t, gswitch, socket, append([]string{"--netns", l.sw}, words[2:]...)...)
			d.await()
			ran++
		case words[1] == "run": // another switch over the same interfaces, from the file
			d.stop(l.sw)
			d = launchProgram(t, gswitch, socket, "-c", filepath.Join(dir, words[3]))
			d.await()
			ran++
		case words[1] == "apply":
			write(t, filepath.Join(dir, "s1.yaml"), strings.Replace(document, "10.0.2.254", "10.0.2.253", 1))
			shell(t, dir, command+" --socket "+socket)
			if out := shell(t, dir, "bin/gswitch show routes --socket "+socket); !strings.Contains(out, "10.0.2.253") {
				t.Errorf("%s: the routes are\n%s", command, out)
			}
			ran++
		case words[1] == "add":
			shell(t, dir, command+" --socket "+socket)
			if out := shell(t, dir, "bin/gswitch show routes --socket "+socket); !strings.Contains(out, words[3]) {
				t.Errorf("%s: the routes are\n%s", command, out)
			}
			ran++
		case words[1] == "show":
			if out := shell(t, dir, command+" --socket "+socket); strings.Contains(command, "ports") && !strings.Contains(out, "d0") {
				t.Errorf("%s shows\n%s", command, out)
			}
			ran++
		case words[1] == "watch":
			shell(t, dir, command+" -n 1 --socket "+socket)
			ran++
		case words[1] == "validate":
			shell(t, dir, command)
			ran++
		}
	}
	if ran < 10 {
		t.Errorf("only %d commands ran: this test reads the README wrongly", ran)
	}
}
