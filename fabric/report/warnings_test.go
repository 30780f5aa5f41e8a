package report

import (
	"bytes"
	"strings"
	"testing"

	"gswitch/fabric/results"
)

// What is seldom meant stands in both reports, with the run that it is about.
func TestWarnings(t *testing.T) {
	f := &results.File{Scenario: "s", Runs: []results.Run{{Name: "a"}, {Name: "b", Warnings: []string{"hosts.cc: <unheard>"}}}}
	var text, page bytes.Buffer
	if err := Text(&text, f, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := HTML(&page, f); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "WARNING: b: hosts.cc: <unheard>\n") || !strings.Contains(page.String(), "b: hosts.cc: &lt;unheard&gt;") {
		t.Errorf("%s", text.String())
	}
	f.Runs[1].Warnings = nil
	text.Reset()
	page.Reset()
	if Text(&text, f, TextOptions{}) != nil || HTML(&page, f) != nil || strings.Contains(text.String()+page.String(), "WARNING") || strings.Contains(page.String(), `id="warnings"`) {
		t.Error("a warning of nothing")
	}
}
