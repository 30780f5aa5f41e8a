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
	counts, section, table := map[string]*claimCount{}, "", false
	head := map[string]string{}
	var all claimCount
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
		case section == "" && len(cells) == 6:
			name, _, _ := strings.Cut(cells[0], ",")
			head[name] = strings.Join(cells[1:], " ")
		case cells[0] == "claim":
			table = true
			if len(cells) != 6 || cells[3] != "result" {
				t.Errorf("the fourth column is not named: %s", line)
			}
		case table && !strings.HasPrefix(cells[0], "---"):
			if len(cells) != 6 {
				t.Errorf("%d cells: %.80s", len(cells), line)
				continue
			}
			k := counts[section]
			if k == nil {
				k = new(claimCount)
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
			case "fit":
				k.fits, all.fits = k.fits+1, all.fits+1
				if cells[4] == "" {
					t.Errorf("does not say what was chosen for it: %.80s", line)
				}
			case "not run":
				k.notRun++
			case "-":
			default:
				t.Errorf("neither holds nor deviates nor a fit: %.80s", line)
			}
		}
	}
	if len(counts) < 6 {
		t.Fatalf("tables of %d papers", len(counts))
	}
	for name, k := range counts {
		if want := k.text(); head[name] != want {
			t.Errorf("the head says %q of %s; its tables have %s", head[name], name, want)
		}
	}
	if want := fmt.Sprintf("**%d of %d claims hold, and %d are fits.**", all.holds, all.all(), all.fits); !strings.Contains(string(text), want) {
		t.Errorf("the head does not say %q", want)
	}
}

// claimCount counts the claims of a section by their result.
type claimCount struct{ holds, deviates, fits, notRun int }

func (c claimCount) all() int { return c.holds + c.deviates + c.fits }

func (c claimCount) text() string {
	return fmt.Sprintf("%d %d %d %d %d", c.all(), c.holds, c.deviates, c.fits, c.notRun)
}
