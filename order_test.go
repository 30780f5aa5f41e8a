package gswitch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Go goes through a map in another order each time. What a node does must not
// depend on that, or a run does not repeat: in components without I/O nothing ranges
// over a map, but to fill another map, whose order does not matter either.
func TestNoOrderOfMaps(t *testing.T) {
	components := readComponents(t)
	still := sansIO(t, components)
	var names []string
	for _, p := range list(t, "./...") {
		if r := componentOf(components, p.ImportPath); r != nil && still[r.name] {
			names = append(names, p.ImportPath)
		}
	}
	if len(names) < 15 {
		t.Fatalf("only %d packages without I/O: %v", len(names), names)
	}
	ranges := 0
	for _, p := range typed(t, names) {
		for _, f := range p.files {
			for _, d := range f.Decls {
				name := p.types.Name() + "." + funcName(d)
				for _, at := range rangesOverMaps(p.info, d) {
					ranges++
					if !at.fills {
						t.Errorf("%s: %s goes through a map in no fixed order, in a component without I/O", p.fset.Position(at.pos), name)
					}
				}
			}
		}
	}
	if ranges == 0 {
		t.Error("no range over a map was found, not even those that are allowed")
	}
}

// The test finds what it is there to find.
func TestRangesOverMapsAreFound(t *testing.T) {
	const source = `package p
import "maps"
import "slices"
type table map[string]int
func plain(m table) { for k := range m { println(k) } }
func alias(m map[int]table) { for range m { println() } }
func iterator(m table) { for k := range maps.Keys(m) { println(k) } }
func collected(m table) []string { return slices.Collect(maps.Keys(m)) }
func generic[M ~map[string]int](m M) { for k := range m { println(k) } }
func filled(m table) { o := table{}; for k, v := range m { if v > 0 { o[k] = v } } }
func appended(m table) { var o []string; for k := range m { o = append(o, k) }; println(o) }
func overwritten(m table) { o := table{}; for _, v := range m { o["x"] = v } }
func inOrder(m table) { for _, k := range slices.Sorted(maps.Keys(m)) { println(k) } }
func slice(m []int) { for k := range m { println(k) } }
func copied(m table) table { return maps.Clone(m) }
`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	_, from := compiled(t, fset, []string{"maps", "slices"})
	config := types.Config{Importer: from}
	if _, err := config.Check("p", fset, []*ast.File{f}, info); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range f.Decls {
		for _, at := range rangesOverMaps(info, d) {
			if !at.fills {
				found = append(found, funcName(d))
			}
		}
	}
	if want := []string{"plain", "alias", "iterator", "collected", "generic", "appended", "overwritten"}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

func funcName(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return "(a variable)"
	}
	return f.Name.Name
}

// mapRange is a place where a map's order is used; fills says that all it does
// is to fill another map by the same keys.
type mapRange struct {
	pos   token.Pos
	fills bool
}

func rangesOverMaps(info *types.Info, d ast.Decl) (found []mapRange) {
	inOrder := map[ast.Expr]bool{} // arguments of slices.Sorted and its kin
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if isMap(info.TypeOf(n.X)) {
				found = append(found, mapRange{n.Pos(), fillsMap(info, n)})
			}
		case *ast.CallExpr:
			if name := packaged(info, n.Fun, "slices"); strings.HasPrefix(name, "Sorted") {
				inOrder[n.Args[0]] = true
			}
			switch packaged(info, n.Fun, "maps") {
			case "Keys", "Values", "All":
				if !inOrder[n] {
					found = append(found, mapRange{n.Pos(), false})
				}
			}
		}
		return true
	})
	return found
}

func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := t.(*types.TypeParam); ok {
		t = p.Constraint().Underlying().(*types.Interface).EmbeddedType(0)
		if u, ok := t.(*types.Union); ok && u.Len() > 0 {
			t = u.Term(0).Type()
		}
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// packaged returns the name that a function has in a package, or "".
func packaged(info *types.Info, fun ast.Expr, path string) string {
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	s, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if o := info.Uses[s.Sel]; o != nil && o.Pkg() != nil && o.Pkg().Path() == path {
		return s.Sel.Name
	}
	return ""
}

// fillsMap reports whether the loop does nothing but to store into a map under
// the key that it goes by, perhaps on a condition.
func fillsMap(info *types.Info, loop *ast.RangeStmt) bool {
	key, ok := loop.Key.(*ast.Ident)
	body := loop.Body.List
	for ok && len(body) == 1 {
		switch s := body[0].(type) {
		case *ast.IfStmt:
			if s.Init != nil || s.Else != nil {
				return false
			}
			body = s.Body.List
		case *ast.AssignStmt:
			if len(s.Lhs) != 1 {
				return false
			}
			at, ok := s.Lhs[0].(*ast.IndexExpr)
			if !ok || !isMap(info.TypeOf(at.X)) {
				return false
			}
			by, ok := at.Index.(*ast.Ident)
			return ok && info.Uses[by] != nil && info.Uses[by] == info.Defs[key]
		default:
			return false
		}
	}
	return false
}

// typedPackage is a package with the types of its expressions.
type typedPackage struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
	types *types.Package
}

// listed is what go list reports of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// compiled lists packages with all that they import, and imports what the
// compiler left of them.
func compiled(t *testing.T, fset *token.FileSet, paths []string) (map[string]listed, types.Importer) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-pgo=off", "-json=ImportPath,Dir,GoFiles,Export"}, paths...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	return all, importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if all[path].Export == "" {
			return nil, fmt.Errorf("nothing was compiled of %s", path)
		}
		return os.Open(all[path].Export)
	})
}

// typed checks packages against what the compiler left of those that they
// import.
func typed(t *testing.T, paths []string) (out []typedPackage) {
	t.Helper()
	fset := token.NewFileSet()
	all, from := compiled(t, fset, paths)
	for _, path := range paths {
		p := typedPackage{fset: fset, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
		for _, name := range all[path].GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(all[path].Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			p.files = append(p.files, f)
		}
		config := types.Config{Importer: from}
		var err error
		if p.types, err = config.Check(path, fset, p.files, p.info); err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}
