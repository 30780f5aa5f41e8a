package scenarios_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"gswitch/fabric/scenario"
)

// The counts at the head of docs/REPRODUCTION.md are those of its tables.
func TestReproductionCounts(t *testing.T) {
	text, head, claims := reproduction(t)
	counts := map[string]*claimCount{}
	var all claimCount
	for _, c := range claims {
		k := counts[c.section]
		if k == nil {
			k = new(claimCount)
			counts[c.section] = k
		}
		k.add(t, c)
		all.add(t, c)
	}
	if len(counts) < 6 {
		t.Fatalf("tables of %d papers", len(counts))
	}
	for name, k := range counts {
		if want := k.text(); head[name] != want {
			t.Errorf("the head says %q of %s; its tables have %s", head[name], name, want)
		}
	}
	if want := fmt.Sprintf("**%d of %d claims hold, and %d are fits.**", all.holds, all.all(), all.fits); !strings.Contains(text, want) {
		t.Errorf("the head does not say %q", want)
	}
}

var scenarioOfCommand = regexp.MustCompile("(scenarios/[\\w./-]+\\.yaml)([^`]*)")

// What the page says deviates stands under deviates in the scenario that the
// row names, so that a run would tell if it held: a scenario has no fewer claims
// there than rows that deviate. Rows whose command sets something else than the
// file are not of its runs.
func TestDeviationsStandInScenarios(t *testing.T) {
	_, _, claims := reproduction(t)
	rows := map[string][]string{}
	command := ""
	for _, c := range claims {
		if !strings.HasPrefix(c.command, "same") {
			command = c.command
		}
		named := scenarioOfCommand.FindStringSubmatch(command)
		switch {
		case c.result != "deviates":
		case named == nil:
			t.Errorf("%s: names no scenario: %s", c.section, c.claim)
		case strings.Contains(named[2], " --set ") || strings.HasPrefix(c.command, "same, `--set "):
		default:
			rows[named[1]] = append(rows[named[1]], c.claim)
		}
	}
	if len(rows) < 40 {
		t.Errorf("rows that deviate name %d scenarios", len(rows))
	}
	for file, of := range rows {
		s, err := scenario.Load("../"+file, scenario.Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if n := len(s.Doc.Deviates); n < len(of) {
			t.Errorf("%s has %d claims under deviates, and by the page %d deviate:\n\t%s", file, n, len(of), strings.Join(of, "\n\t"))
		}
	}
}

// A claim is one row of a paper's table.
type claim struct{ section, claim, paper, ours, result, why, command string }

// reproduction reads the page: its text, the row of each section in the table
// at its head, and the claims of all tables in order.
func reproduction(t *testing.T) (text string, head map[string]string, claims []claim) {
	t.Helper()
	data, err := os.ReadFile("../docs/REPRODUCTION.md")
	if err != nil {
		t.Fatal(err)
	}
	head = map[string]string{}
	section, table := "", false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = name
		}
		if !strings.HasPrefix(line, "|") {
			table = false
			continue
		}
		cells := cellsOf(line)
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
			claims = append(claims, claim{section, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]})
		}
	}
	return string(data), head, claims
}

// cellsOf is the cells of a table's row. `\|` is a bar within one.
func cellsOf(line string) []string {
	cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "/"), " | ")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// claimCount counts claims by their result.
type claimCount struct{ holds, deviates, fits, notRun int }

func (k *claimCount) add(t *testing.T, c claim) {
	t.Helper()
	switch c.result {
	case "holds":
		k.holds++
	case "deviates":
		k.deviates++
	case "fit":
		k.fits++
	case "not run":
		k.notRun++
	case "-":
	default:
		t.Errorf("%s: neither holds nor deviates nor a fit: %s", c.section, c.claim)
	}
	if (c.result == "deviates" || c.result == "fit") && c.why == "" {
		t.Errorf("%s: does not say why (%s): %s", c.section, c.result, c.claim)
	}
}

func (k claimCount) all() int { return k.holds + k.deviates + k.fits }

func (k claimCount) text() string {
	return fmt.Sprintf("%d %d %d %d %d", k.all(), k.holds, k.deviates, k.fits, k.notRun)
}
