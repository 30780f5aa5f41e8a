// Package gswitch_test checks the boundaries of the components: which may import which
// is read from the table in docs/ARCHITECTURE.md, so the page cannot drift
// from the code.
package gswitch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gswitch/cc"
)

const (
	module = "gswitch"
	page   = "docs/ARCHITECTURE.md"
)

// component is a row of the table: the folders that it names and those that they may import.
type component struct {
	name    string
	row     int             // order in the table, 0 = top
	allowed map[string]bool // names of components, closed over what those may import themselves where the table says so
}

// pkg is what go list reports of a package of this module.
type pkg struct {
	ImportPath string
	Dir        string
	Name       string
	GoFiles    []string
	Imports    []string
}

var quoted = regexp.MustCompile("`([a-z0-9/]+)`")

// readComponents parses the table "| component | what it holds | may import |". A cell
// of the last column is "nothing", "everything below", or a list of components;
// "and below" after a list adds what the listed components may import.
func readComponents(t *testing.T) map[string]*component {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		names []string
		cell  string
	}
	var rows []row
	inTable := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case len(cells) == 3 && strings.TrimSpace(cells[0]) == "component" && strings.TrimSpace(cells[2]) == "may import":
			inTable = true
		case len(cells) != 3:
			inTable = false
		case inTable && !strings.Contains(cells[0], "---"):
			var names []string
			for _, m := range quoted.FindAllStringSubmatch(cells[0], -1) {
				names = append(names, strings.TrimSuffix(m[1], "/"))
			}
			if len(names) == 0 {
				t.Fatalf("%s: a row of the components names no folder in backticks: %s", page, line)
			}
			rows = append(rows, row{names, strings.ReplaceAll(strings.TrimSpace(cells[2]), "`", "")})
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s: no table with the columns component, what it holds, may import", page)
	}

	components := map[string]*component{}
	for i := len(rows) - 1; i >= 0; i-- { // from the ground floor up, so that what is allowed below is known
		allowed := map[string]bool{}
		list, closed := strings.CutSuffix(strings.ReplaceAll(rows[i].cell, ", and below", " and below"), " and below")
		switch rows[i].cell {
		case "nothing":
		case "everything below":
			for name := range components {
				allowed[name] = true
			}
		default:
			for _, name := range strings.Split(list, ",") {
				name = strings.TrimSpace(name)
				below, known := components[name]
				if !known {
					t.Fatalf("%s: %s may import %q, which is not a component below it", page, rows[i].names[0], name)
				}
				allowed[name] = true
				if closed {
					for n := range below.allowed {
						allowed[n] = true
					}
				}
			}
		}
		for _, name := range rows[i].names {
			if components[name] != nil {
				t.Fatalf("%s: %s has two rows", page, name)
			}
			components[name] = &component{name, i, allowed}
		}
	}
	return components
}

// componentOf returns the component of a package: the longest folder of the table that holds it.
func componentOf(components map[string]*component, importPath string) *component {
	dir := strings.TrimPrefix(importPath, module+"/")
	for ; dir != "."; dir = filepath.Dir(dir) {
		if r := components[dir]; r != nil {
			return r
		}
	}
	return nil
}

// list returns the packages of this module that match the patterns. Profiles are
// left out: they give the packages below a command names of their own.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-pgo=off", "-json=ImportPath,Dir,Name,GoFiles,Imports"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, &stderr)
	}
	var pkgs []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/") {
			pkgs = append(pkgs, p)
		}
	}
}

func TestImports(t *testing.T) {
	components := readComponents(t)
	for _, p := range list(t, "./...") {
		if p.ImportPath == module || len(p.GoFiles) == 0 {
			continue
		}
		r := componentOf(components, p.ImportPath)
		if r == nil {
			t.Errorf("%s stands in no component of %s", p.ImportPath, page)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module+"/") {
				continue
			}
			switch to := componentOf(components, imp); {
			case to == nil:
				t.Errorf("%s imports %s, which stands in no component of %s", p.ImportPath, imp, page)
			case to.name != r.name && !r.allowed[to.name]:
				t.Errorf("%s imports %s: %s may not import %s", p.ImportPath, imp, r.name, to.name)
			}
		}
	}
}

// sansIO returns the names of the components without I/O: those of the nodes, what
// they may import, the engine of virtual time, and records.
func sansIO(t *testing.T, components map[string]*component) map[string]bool {
	t.Helper()
	still := map[string]bool{}
	for _, name := range []string{"systems", "vswitch", "hostnic", "sim", "replay"} {
		node := components[name]
		if node == nil {
			t.Fatalf("%s has no component %s", page, name)
		}
		still[name] = true
		for below := range node.allowed {
			still[below] = true
		}
	}
	return still
}

// A node and all that it stands on do no I/O: time and randomness are handed
// in, nothing blocks, nothing runs beside them. Whatever
// vswitch and hostnic may import is such a component, and so is the engine of
// virtual time.
func TestSansIO(t *testing.T) {
	components := readComponents(t)
	still := sansIO(t, components)
	banned := []string{"net/http", "os", "os/exec", "os/signal", "io/ioutil", "log", "log/slog", "syscall", "context",
		"math/rand", "math/rand/v2", "crypto/rand", "golang.org/x/sys/unix", "github.com/vishvananda/netlink"}
	pureNet := []string{"ParseMAC", "HardwareAddr"} // of package net: what only computes
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	locks := []string{"Mutex", "RWMutex", "Cond", "WaitGroup", "Once", "Map", "Pool"}

	for _, p := range list(t, "./...") {
		r := componentOf(components, p.ImportPath)
		if r == nil || !still[r.name] {
			continue
		}
		eachFile(t, p, func(name string, fset *token.FileSet, f *ast.File) {
			for _, imp := range f.Imports {
				if path, _ := strconv.Unquote(imp.Path.Value); slices.Contains(banned, path) {
					t.Errorf("%s: imports %s in a component without I/O", fset.Position(imp.Pos()), path)
				}
			}
			// The depot's lock is taken for hundreds of chunks at once and never waits for I/O.
			depot := r.name == "frame" && name == "pool.go"
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: starts a goroutine in a component without I/O", fset.Position(n.Pos()))
				case *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
					t.Errorf("%s: uses a channel in a component without I/O", fset.Position(n.Pos()))
				case *ast.SelectorExpr:
					switch x, _ := n.X.(*ast.Ident); {
					case x == nil || x.Obj != nil: // a variable of that name
					case x.Name == "time" && slices.Contains(clock, n.Sel.Name):
						t.Errorf("%s: reads or waits for the clock (time.%s) in a component without I/O", fset.Position(n.Pos()), n.Sel.Name)
					case x.Name == "net" && !slices.Contains(pureNet, n.Sel.Name):
						t.Errorf("%s: uses net.%s in a component without I/O", fset.Position(n.Pos()), n.Sel.Name)
					case x.Name == "sync" && slices.Contains(locks, n.Sel.Name) && !depot:
						t.Errorf("%s: uses sync.%s in a component without I/O", fset.Position(n.Pos()), n.Sel.Name)
					}
				}
				return true
			})
		})
	}
}

// core are the packages that do not know which systems there are.
var core = []string{"./frame", "./wire", "./buffer", "./pfc", "./scheduler", "./scheduler/orders", "./pipeline", "./vswitch", "./hostnic/...", "./notice", "./feature", "./command", "./control/...", "./metrics", "./fabric/measure", "./fabric/results", "./fabric/run", "./fabric/vnet"}

// The cores of the switch and of the NIC do not know which systems register, nor do
// daemons, metrics and runs: their names stand in none of their files.
func TestCoreNamesNoSystem(t *testing.T) {
	imported := regexp.MustCompile(`"` + module + `/(?:[a-z0-9/]+/)?([a-z0-9]+)/[a-z0-9]+"`)
	text, err := os.ReadFile("systems/systems.go")
	if err != nil {
		t.Fatal(err)
	}
	var systems []string
	for _, s := range imported.FindAllStringSubmatch(string(text), -1) {
		name := s[1]
		switch name {
		case "mirror":
			name = "everflow" // copies to a port are the switch's own
		case "int":
			continue // a word of Go: see TestTelemetryIsOfHosts
		}
		if !slices.Contains(systems, name) {
			systems = append(systems, name)
		}
	}
	if len(systems) == 0 {
		t.Fatal("systems/systems.go lists no system")
	}
	systems = append(systems, "rc3", `deter\b`) // a part of transport, and what runs alone have
	for _, p := range list(t, core...) {
		for _, name := range systems {
			word := regexp.MustCompile(`(?i)\b` + name)
			for _, file := range p.GoFiles {
				text, err := os.ReadFile(filepath.Join(p.Dir, file))
				if err != nil {
					t.Fatal(err)
				}
				if at := word.FindIndex(text); at != nil {
					t.Errorf("%s/%s:%d names %s, which registers itself", p.ImportPath, file, 1+bytes.Count(text[:at[0]], []byte("\n")), name)
				}
			}
		}
	}
}

// In-band telemetry is a system of switches (int/point), and of them no package of the core imports it. At hosts it is
// a format: a NIC writes its empty header into each data frame and reads it from each acknowledgement, in the units of
// the queue pair, and congestion control is given what it read (cc.Feedback). By registration that would be a call
// through a pointer for each of them, of formats that congestion control has to know as they are. Daemons show the
// same hops, and a run gives all nodes the same format and units.
func TestTelemetryIsOfHosts(t *testing.T) {
	hosts := regexp.MustCompile(`^` + module + `/(hostnic(/agent|/bump)?|control/host|fabric/run|fabric/vnet)$`)
	for _, p := range list(t, core...) {
		if slices.Contains(p.Imports, module+"/int") && !hosts.MatchString(p.ImportPath) {
			t.Errorf("%s imports int, in-band telemetry", p.ImportPath)
		}
		if slices.Contains(p.Imports, module+"/int/point") && p.ImportPath != module+"/fabric/vnet" {
			t.Errorf("%s imports int/point, the side of in-band telemetry in switches", p.ImportPath)
		}
	}
}

// What the core does for a system, it names after what it does: names that are no folder's
// stand in comments at most, which say where something is described.
func TestCoreNamesNoPaper(t *testing.T) {
	paper := regexp.MustCompile(`DeTail|(?i:open_?queue|gentle.?flow|sundial)`)
	for _, p := range list(t, core...) {
		eachFile(t, p, func(_ string, fset *token.FileSet, f *ast.File) {
			eachName(f, func(at token.Pos, text string) {
				if name := paper.FindString(text); name != "" {
					t.Errorf("%s: %s is named after a paper that has %s", fset.Position(at), text, name)
				}
			})
		})
	}
}

// The language of policies, too, stands in its room: what an order of queues is made of and counts, the scheduler
// tells in general words (scheduler.Inside). The fields of the API, and the keys of documents that networks of
// scenarios fill in, have had its names.
func TestCoreNamesNoPolicy(t *testing.T) {
	name := regexp.MustCompile(`(?i:polic(y|ies))`)
	kept := regexp.MustCompile(`^(control/(list|privilege/filter)|fabric/vnet/switches|fabric/run/network)\.go: Polic(y|ies)$`)
	for _, p := range list(t, core...) {
		if slices.Contains(p.Imports, module+"/policy") {
			t.Errorf("%s imports policy", p.ImportPath)
		}
		eachFile(t, p, func(file string, fset *token.FileSet, f *ast.File) {
			if ast.IsGenerated(f) {
				return
			}
			eachName(f, func(at token.Pos, text string) {
				where := strings.TrimPrefix(p.ImportPath, module+"/") + "/" + file + ": " + text
				if name.MatchString(text) && !kept.MatchString(where) {
					t.Errorf("%s: %s is a name of policies", fset.Position(at), text)
				}
			})
		})
	}
}

// Runs measure what every network has. What they have of a system has its name, its key and its
// numbers where that system observes runs, or in its counters.
func TestRunsNameNoValueOfSystems(t *testing.T) {
	value := regexp.MustCompile(`(?:^"(?:host_)?clock_)|(?i:(policy|shadow)_|low_?(frames|data)|lost_|slots\.csv)|^Clock$`)
	room := regexp.MustCompile(`^` + module + `/(clocksync|policy|deter|telemetry|mirror|tcp|fabric/(clock|flows|traces)|fabric/observe/(?:[^a]|a[^l]))`)
	for _, p := range list(t, "./fabric/measure", "./fabric/results", "./fabric/run") {
		for _, imp := range p.Imports {
			if room.MatchString(imp) {
				t.Errorf("%s imports %s, which is a system's", p.ImportPath, imp)
			}
		}
		eachFile(t, p, func(_ string, fset *token.FileSet, f *ast.File) {
			eachName(f, func(at token.Pos, text string) {
				if of := value.FindString(text); of != "" {
					t.Errorf("%s: %s is a value of a system", fset.Position(at), text)
				}
			})
		})
	}
}

// eachName calls see with the identifiers and literals of a file, which its comments are not.
func eachName(f *ast.File, see func(at token.Pos, text string)) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			see(n.Pos(), n.Name)
		case *ast.BasicLit:
			see(n.Pos(), n.Value)
		}
		return true
	})
}

// Congestion control is chosen by its name in documents, and says itself what it needs: code
// names none, nor a format of telemetry that is made for one. Comments may say where something
// is described. The formats of headers stand in wire.
func TestCoreNamesNoCongestionControl(t *testing.T) {
	var names []string
	for _, in := range cc.Infos() {
		if in.Of == "" && in.Name != "none" {
			names = append(names, regexp.QuoteMeta(in.Name))
		}
	}
	if len(names) < 2 {
		t.Fatalf("congestion control %q is registered", names)
	}
	name := regexp.MustCompile("(?i)" + strings.Join(names, "|"))
	for _, p := range list(t, core...) {
		if p.ImportPath == module+"/wire" {
			continue
		}
		eachFile(t, p, func(_ string, fset *token.FileSet, f *ast.File) {
			if ast.IsGenerated(f) {
				return
			}
			eachName(f, func(at token.Pos, text string) {
				if of := name.FindString(text); of != "" {
					t.Errorf("%s: %s names %s, which registers itself", fset.Position(at), text, of)
				}
			})
		})
	}
}

func TestUnsafe(t *testing.T) {
	components := readComponents(t)
	for _, p := range list(t, "./...") {
		r := componentOf(components, p.ImportPath)
		if r != nil && (r.name == "frame" || r.name == "dataplane/xsk" || r.name == "clocktime") || p.ImportPath == module+"/control/privilege" {
			continue
		}
		eachFile(t, p, func(_ string, fset *token.FileSet, f *ast.File) {
			for _, imp := range f.Imports {
				if imp.Path.Value == `"unsafe"` && !ast.IsGenerated(f) {
					t.Errorf("%s: unsafe belongs into frame and dataplane/xsk alone, into clocktime, whose page other programs map, and into control/privilege, whose calls of the kernel no package makes", fset.Position(imp.Pos()))
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, p := range list(t, "./...") {
		for _, bad := range []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"} {
			if p.Name == bad {
				t.Errorf("%s: a package named %s says nothing of what it holds", p.ImportPath, bad)
			}
		}
	}
}

// The page names the components that exist, no more.
func TestComponentsExist(t *testing.T) {
	for name := range readComponents(t) {
		if fi, err := os.Stat(name); err != nil || !fi.IsDir() {
			t.Errorf("%s names the component %s, which is not a folder", page, name)
		}
	}
}

func eachFile(t *testing.T, p pkg, visit func(name string, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	for _, name := range p.GoFiles {
		fset := token.NewFileSet()
		path := filepath.Join(p.Dir, name)
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			t.Error(fmt.Errorf("%s: %w", path, err))
			continue
		}
		visit(name, fset, f)
	}
}

// The pages name files that exist.
func TestPagesNameExistingFiles(t *testing.T) {
	file := regexp.MustCompile("`([A-Za-z0-9_.-]+/[A-Za-z0-9_./-]*\\.(?:go|md|sh|c|h|yaml|proto))`")
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range file.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
}
