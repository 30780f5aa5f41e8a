package gswitch_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// virtualTime are the packages whose floating point decides when a frame leaves
// or what a report says of a run.
var virtualTime = []string{
	"./cc", "./int", "./transport", "./hostnic", "./scheduler", "./buffer", "./pfc", "./rocc", "./qcn", "./fault", "./pipeline", "./vswitch", "./sim",
	"./fabric/vnet", "./fabric/workload", "./fabric/measure", "./fabric/results", "./fabric/run",
}

// TestNothingIsFused keeps the promise that a run gives the same digest on
// every machine: the language lets a compiler round x*y+z once instead of
// twice, and on arm64 it does, unless the product is converted explicitly. So
// no such instruction may come of these packages.
func TestNothingIsFused(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for another processor")
	}
	args := append([]string{"build", "-gcflags=-S"}, withFloats(t)...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out[max(0, len(out)-2000):])
	}
	fused := regexp.MustCompile(`\((\S+\.go:\d+)\)\tFN?M(ADD|SUB)[DS]\t`)
	multiplied := false
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		multiplied = multiplied || bytes.Contains(lines.Bytes(), []byte("\tFMULD\t"))
		if m := fused.FindSubmatch(lines.Bytes()); m != nil && !seen[string(m[1])] {
			seen[string(m[1])] = true
			t.Errorf("%s: a product is added without being rounded on arm64: write float64(x*y)+z", m[1])
		}
	}
	if !multiplied {
		t.Error("no multiplication was found: this test reads the listing wrongly")
	}
}

// rounding are functions of package math whose last bit depends on the
// processor: they are written in assembly for some, or multiply and add at once.
var rounding = regexp.MustCompile(`\bmath\.(Acosh?|Asinh?|Atan[2h]?|Cbrt|Cosh?|Erf(c|inv|cinv)?|Exp2?|Expm1|FMA|Gamma|Hypot|J[01n]|Lgamma|Log(10|1p|2)?|Pow|Sin(cos|h)?|Tanh?|Y[01n])\(`)

// Nor may these packages call what rounds otherwise on another processor.
func TestNothingRoundsOtherwise(t *testing.T) {
	for _, folder := range virtualTime {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", folder, err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(b), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if m := rounding.FindString(code); m != "" {
					t.Errorf("%s:%d: %s...) has another last bit on some processors", f, i+1, m)
				}
			}
		}
	}
}

// withFloats returns the packages that have floating point at all. It reads all
// files of them, so that the go tool caches the result by these.
func withFloats(t *testing.T) (packages []string) {
	for _, folder := range virtualTime {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", folder, err)
		}
		has := false
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			has = has || !strings.HasSuffix(f, "_test.go") && bytes.Contains(b, []byte("float64"))
		}
		if has {
			packages = append(packages, folder)
		}
	}
	return packages
}
