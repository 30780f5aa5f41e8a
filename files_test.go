package gswitch_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Files that are not written by package wholefile, which has them appear whole or not at
// all, and why a full disk leaves nothing half written there that is read later.
var writers = map[string]string{
	"capture/capturetest/file.go":   "for tests",
	"clocktime/page.go":             "is mapped, beside its name, and renamed",
	"control/cli/capture.go":        "a capture as it comes: whole blocks, and an error where the disk ends",
	"control/listen.go":             "a lock, of no content",
	"control/privilege/landlock.go": "an empty file, so that it can be named",
	"control/recording.go":          "a record as it comes, which says how far it goes",
	"dataplane/pcap.go":             "a capture as it comes: the port goes down where the disk ends",
	"deploy/package/main.go":        "makes packages in a new directory",
	"fabric/lab/first.go":           "the kernel's",
	"fabric/lab/process.go":         "a log, which is added to, and the kernel's",
	"fabric/lab/state.go":           "a lock, and a state beside its name, renamed",
	"fabric/lab/wiring.go":          "the kernel's",
	"fabric/live/record.go":         "a record as it comes, which says how far it goes",
	"fabric/results/store.go":       "a directory that is renamed when it is whole",
	"fabric/run/store.go":           "tries whether a directory can be written",
	"fabric/transparent/demo.go":    "in a directory of this run, which goes with it",
	"fabric/transparent/host.go":    "the kernel's",
	"fabric/web/webtest/browser.go": "for tests",
	"natsserver/server.go":          "a lock, of no content",
	"sweep/bundle.go":               "in a new directory, which a failure removes",
	"sweep/scratch.go":              "a lock, of no content",
	"wholefile/wholefile.go":        "it does so",
}

// Files that are read as a whole and not by package wholefile, which gives what has no end
// an end.
var readers = map[string]string{
	"cli/gcollect/run.go":        "its own, in --data",
	"dataplane/carries.go":       "the kernel's, of processes",
	"deploy/package/check.go":    "packages that were just made",
	"deploy/package/bom.go":      "modules, when packages are made",
	"deploy/package/main.go":     "modules, when packages are made",
	"fabric/lab/exec.go":         "/etc/hosts",
	"fabric/lab/netns.go":        "its own, in /run/gfabric",
	"fabric/lab/process.go":      "its own, in /run/gfabric, and the kernel's",
	"fabric/lab/state.go":        "its own, in /run/gfabric",
	"fabric/run/elsewhere.go":    "its own, of a run that has just ended",
	"fabric/transparent/demo.go": "its own, of this run",
	"natsserver/server.go":       "its own, in --data",
}

// Files are written so that a full disk, or a kill, leaves none that is half there, and
// read so that none is without end.
func TestFilesAreWhole(t *testing.T) {
	wrote, read := map[string]token.Position{}, map[string]token.Position{}
	for _, p := range list(t, "./...") {
		eachFile(t, p, func(name string, fset *token.FileSet, f *ast.File) {
			file := filepath.Join(strings.TrimPrefix(p.ImportPath, module+"/"), name)
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && named(call.Fun, "ReadFile") && ofKernel(call.Args[0]) {
					return false
				}
				switch x, ok := n.(ast.Expr); {
				case !ok:
				case named(x, "Create", "CreateTemp", "WriteFile", "OpenFile"):
					wrote[file] = fset.Position(x.Pos())
				case named(x, "ReadFile"):
					read[file] = fset.Position(x.Pos())
				}
				return true
			})
		})
	}
	for _, c := range []struct {
		found map[string]token.Position
		known map[string]string
		do    string
	}{{wrote, writers, "wholefile.Write, so that a full disk leaves no half of it"}, {read, readers, "wholefile.Read, since what it names may have no end"}} {
		if len(c.found) == 0 {
			t.Errorf("nothing was found that is to be %s", c.do)
		}
		for _, file := range slices.Sorted(maps.Keys(c.found)) {
			if c.known[file] == "" {
				t.Errorf("%v: use %s", c.found[file], c.do)
			}
		}
		for _, file := range slices.Sorted(maps.Keys(c.known)) {
			if _, ok := c.found[file]; !ok {
				t.Errorf("%s is in the list of this test and does so no more", file)
			}
		}
	}
}

// named reports whether an expression is one of some names of package os.
func named(e ast.Expr, names ...string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == "os" && slices.Contains(names, sel.Sel.Name)
}

// ofKernel reports whether a name begins with that of a file of the kernel.
func ofKernel(name ast.Expr) bool {
	for {
		b, ok := name.(*ast.BinaryExpr)
		if !ok {
			break
		}
		name = b.X
	}
	if call, ok := name.(*ast.CallExpr); ok && len(call.Args) > 0 { // fmt.Sprintf, filepath.Join
		name = call.Args[0]
	}
	lit, ok := name.(*ast.BasicLit)
	return ok && (strings.HasPrefix(lit.Value, `"/proc/`) || strings.HasPrefix(lit.Value, `"/sys/`))
}
