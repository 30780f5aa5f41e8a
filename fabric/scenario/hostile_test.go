package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A scenario from elsewhere reads plain files that end, writes where
// it is asked to, costs little to refuse, and does not pass by claims that no run
// could break.
func TestHostileScenarios(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(maxSizes + 1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	sized := func(file string) string {
		return head + "\nworkload:\n  - {group: g, kind: poisson, load: 0.1, sizes: " + file + "}\n"
	}
	for name, c := range map[string]struct{ doc, want string }{
		"a path as a name":       {small + "name: ../../x\n", "is no name"},
		"an absolute path":       {small + "name: /etc/x\n", "is no name"},
		"the directory above":    {small + "name: ..\n", "is no name"},
		"a device":               {sized("/dev/zero"), "is no plain file"},
		"a pipe":                 {sized(pipe), "is no plain file"},
		"a directory":            {sized(dir), "is no plain file"},
		"a file without an end":  {sized(large), "bytes, 16777216 are possible"},
		"a policy of a device":   {small + "switch: {policy: {file: /dev/zero}}\n", "is no plain file"},
		"a shadow of a pipe":     {small + "switch: {shadow: {file: " + pipe + "}}\n", "is no plain file"},
		"a policy without end":   {small + "hosts: {policy: {file: " + large + "}}\n", "bytes, 65536 are possible"},
		"a constant":             {small + "expect: [1 < 2]\n", "names no value of a run"},
		"a constant that is not": {small + "deviates: [{claim: 2 < 1, why: x}]\n", "names no value of a run"},
		"a long chain":           {small + "expect: [\"" + strings.Repeat("slowdown_p99 + ", 1_200_000) + "1 > 0\"]\n", "letters, 4096 are possible"},
		"deep nesting":           {small + "expect: [\"" + strings.Repeat("(", 4000) + "\"]\n", "nested too deeply"},
	} {
		_, err := Parse(filepath.Join(dir, "d.yaml"), []byte(c.doc), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 10_000 {
			t.Errorf("%s: %.500v", name, err)
		}
	}
	for _, name := range []string{"fig3.10-testbed", "WebSearch (30 %)"[:9], "a b_c", "größe"} {
		if _, err := Parse("d.yaml", []byte(small+"name: "+name+"\n"), Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A scenario from elsewhere opens no file that did not come with it.
func TestConfined(t *testing.T) {
	dir := t.TempDir()
	secret, own := filepath.Join(t.TempDir(), "secret"), filepath.Join(dir, "own")
	for _, name := range []string{secret, own} {
		if err := os.WriteFile(name, []byte("what nobody is to know\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	up, err := filepath.Rel(dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{
		head + "\nworkload:\n  - {group: g, kind: poisson, load: 0.1, sizes: %s}\n",
		head + "\nworkload:\n  - {group: g, kind: trace, file: %s}\n",
		small + "switch: {policy: {file: %s}}\n",
		small + "switch: {shadow: {file: %s}}\n",
		small + "hosts: {policy: {file: %s}}\n",
		small + "variants: [{name: a, set: {switch.policy.file: %s}}]\n",
		small + "short: {switch: {policy: {file: %s}}}\n",
		small + "sweep: {switch.policy.file: [%s]}\n",
	} {
		for _, name := range []string{secret, up} {
			_, err := Parse(filepath.Join(dir, "d.yaml"), []byte(fmt.Sprintf(format, name)), Options{Confined: true, Short: true})
			if err == nil || !strings.Contains(err.Error(), "does not lie beside the scenario") || strings.Contains(err.Error(), "nobody") {
				t.Errorf("%s: %v", fmt.Sprintf(format, name), err)
			}
		}
		// What came with it is read, and is wrong.
		_, err := Parse(filepath.Join(dir, "d.yaml"), []byte(fmt.Sprintf(format, "own")), Options{Confined: true, Short: true})
		if err == nil || strings.Contains(err.Error(), "does not lie beside") {
			t.Errorf("%s: %v", fmt.Sprintf(format, "own"), err)
		}
	}
}
