package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gswitch/frame"
)

// rule is an alert or a recording rule.
type rule struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T, file string) (rules []rule) {
	t.Helper()
	var doc struct{ Groups []struct{ Rules []rule } }
	text, err := os.ReadFile("prometheus/rules/" + file)
	if err == nil {
		err = yaml.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range doc.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

// Prometheus's own tool takes the configuration and the rules, and every
// alert fires when tests.yml says so.
func TestPromtool(t *testing.T) {
	need(t, "promtool")
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"test", "rules", "rules/tests.yml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

var heading = regexp.MustCompile(`(?m)^#+ (.+)$`)

// Every alert says what is wrong, how bad it is and where to read on, and is
// tested both ways.
func TestAlerts(t *testing.T) {
	operating, err := os.ReadFile("../docs/OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	var anchors []string
	for _, m := range heading.FindAllStringSubmatch(string(operating), -1) {
		anchors = append(anchors, strings.ToLower(m[1]))
	}
	var doc struct {
		Tests []struct {
			Alerts []struct {
				Name string           `yaml:"alertname"`
				Exp  []map[string]any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	text, err := os.ReadFile("prometheus/rules/tests.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range doc.Tests {
		for _, a := range test.Alerts {
			fires[a.Name] = fires[a.Name] || len(a.Exp) > 0
			silent[a.Name] = silent[a.Name] || len(a.Exp) == 0
		}
	}
	for _, r := range readRules(t, "alerts.yml") {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: tested firing %t, silent %t", r.Alert, fires[r.Alert], silent[r.Alert])
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" || r.Labels["service"] != "gswitch" {
			t.Errorf("%s: labels %v", r.Alert, r.Labels)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: annotations %v", r.Alert, r.Annotations)
		}
		page, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		if page != "docs/OPERATING.md" || !slices.Contains(anchors, anchor) {
			t.Errorf("%s: docs/OPERATING.md has no heading for %s", r.Alert, r.Annotations["runbook_url"])
		}
	}
}

// What is no loss says frame.Reason alone.
func TestNotLost(t *testing.T) {
	var want []string
	for r := frame.Keep + 1; r < frame.NumReasons; r++ {
		if !r.Loss() {
			want = append(want, r.String())
		}
	}
	found := false
	for _, r := range readRules(t, "recording.yml") {
		if m := regexp.MustCompile(`reason!~"([^"]*)"`).FindStringSubmatch(r.Expr); m != nil {
			found = true
			if m[1] != strings.Join(want, "|") {
				t.Errorf("%s leaves out %s; no losses are %s", r.Record, m[1], strings.Join(want, "|"))
			}
		}
	}
	if !found {
		t.Error("no rule leaves out what is no loss")
	}
}

// selector matches a vector of this project's metrics, or of up, in an
// expression.
var selector = regexp.MustCompile(`(?:\b(?:[a-z]+:)?gswitch_\w+(?::\w+)?|\bup\b)(?:\{[^}]*\})?`)

// checkRules asks the rules of a Prometheus that has scraped for a moment:
// each is evaluated, each recording rule has a result, and what alerts compare
// is there while all is well, so that they see a change.
func (s *promServer) checkRules(t *testing.T) {
	recorded, alerting := readRules(t, "recording.yml"), readRules(t, "alerts.yml")
	await(t, "evaluation of the rules", func() error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := s.get("rules", nil, &data); err != nil {
			return err
		}
		n := 0
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if n++; r.Health == "err" {
					t.Fatalf("%s: %s", r.Name, r.LastError)
				}
				if r.Health != "ok" {
					return fmt.Errorf("%s is %s", r.Name, r.Health)
				}
			}
		}
		if n != len(recorded)+len(alerting) {
			t.Fatalf("%d rules, want %d and %d", n, len(recorded), len(alerting))
		}
		return nil
	})
	shows := func(expr string) {
		await(t, expr, func() error {
			r, err := s.instant(expr)
			if err != nil {
				t.Fatalf("%s: %v", expr, err)
			}
			if number, _ := look(values(r)); !number {
				return errors.New("shows nothing")
			}
			return nil
		})
	}
	for _, r := range recorded {
		shows(r.Record)
	}
	for _, r := range alerting {
		if _, err := s.instant(r.Expr); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		for _, m := range selector.FindAllString(r.Expr, -1) {
			if !strings.HasPrefix(m, "gswitch_export_") { // nothing is exported in this lab
				shows(m)
			}
		}
	}
}
