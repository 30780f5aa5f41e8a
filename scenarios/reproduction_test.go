package scenarios_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The counts at the head of docs/REPRODUCTION.md are those of its tables, and
// scenarios that it names exist.
func TestReproductionCounts(t *testing.T) {
	text, err := os.ReadFile("../docs/REPRODUCTION.md")
	if err != nil {
		t.Fatal(err)
	}
	type count struct{ holds, deviates, notRun int }
	counts, section, table := map[string]*count{}, "", false
	head := map[string]string{}
	var all count
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = name
		}
		if !strings.HasPrefix(line, "|") {
			table = false
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "/"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case section == "" && len(cells) == 5:
			name, _, _ := strings.Cut(cells[0], ",")
			head[name] = strings.Join(cells[1:], " ")
		case cells[0] == "claim":
			table = true
		case table && !strings.HasPrefix(cells[0], "---"):
			if len(cells) != 6 {
				t.Errorf("%d cells: %.80s", len(cells), line)
				continue
			}
			k := counts[section]
			if k == nil {
				k = new(count)
				counts[section] = k
			}
			switch cells[3] {
			case "holds":
				k.holds, all.holds = k.holds+1, all.holds+1
			case "deviates":
				k.deviates, all.deviates = k.deviates+1, all.deviates+1
				if cells[4] == "" {
					t.Errorf("does not say why it deviates: %.80s", line)
				}
			case "not run":
				k.notRun++
			case "-":
			default:
				t.Errorf("neither holds nor deviates: %.80s", line)
			}
		}
	}
	if len(counts) < 6 {
		t.Fatalf("tables of %d papers", len(counts))
	}
	for name, k := range counts {
		if want := fmt.Sprintf("%d %d %d %d", k.holds+k.deviates, k.holds, k.deviates, k.notRun); head[name] != want {
			t.Errorf("the head says %q of %s; its tables have %s", head[name], name, want)
		}
	}
	if want := fmt.Sprintf("**%d of %d claims hold.**", all.holds, all.holds+all.deviates); !strings.Contains(string(text), want) {
		t.Errorf("the head does not say %q", want)
	}
}
