package deploy_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Every panel of every dashboard shows something of a running fabric, and
// what goes wrong in none shows a zero.
func TestLive(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	need(t, "prometheus", "ip")
	n := raise(t)
	s := startPrometheus(t, n)
	load := n.load(t)
	from := float64(time.Now().UnixMilli()) / 1000
	defer func() {
		for _, p := range load {
			p.alive(t)
		}
	}()

	t.Run("rules", func(t *testing.T) { s.checkRules(t) })
	t.Run("dashboards", func(t *testing.T) {
		left := s.panels(t, from)
		await(t, "panels", func() error {
			var missing []string
			left = slices.DeleteFunc(left, func(p livePanel) bool {
				why := p.look(t, s)
				if why != "" {
					missing = append(missing, p.where+" "+why)
				}
				return why == ""
			})
			if len(missing) > 0 {
				return fmt.Errorf("%d show not what they should:\n%s", len(missing), strings.Join(missing, "\n"))
			}
			return nil
		})
	})
}

// mayBeZero are the panels, by title, that may show nothing but zeros: in this lab
// nothing goes wrong, or at least it need not.
var mayBeZero = []string{
	"Ports down", "Hosts down", "Alerts", "Drops", "Malformed", "Timeouts", "Timeouts and broken peers",
	"Ring drops", "Empty and broken", "Transmit calls cut short", "Frames lost around the rings",
	"Paused now",     // at the instant of the last scrape
	"Learning",       // is over before Prometheus comes
	"Telemetry edge", // hosts make their headers themselves
	"Faults",         // none were asked for
	"Waiting in channels", "Channels opened and lost", "Recovery in channels",
}

// livePanel is a panel whose queries have their variables replaced.
type livePanel struct {
	panel
	where string
	from  float64 // when the load began
}

// panels returns all panels of the dashboards of this lab, as a reader finds them. It has
// no collector: of that one's every query is asked, and shows nothing.
func (s *promServer) panels(t *testing.T, from float64) (all []livePanel) {
	for uid, d := range dashboards(t) {
		if uid == "gswitch-collector" {
			for _, p := range d.Panels {
				for _, q := range p.Targets {
					if _, err := s.instant(substitute(q.Expr, map[string]string{"instance": ".*"})); err != nil {
						t.Errorf("%s: %s: %v", uid, p.Title, err)
					}
				}
			}
			continue
		}
		var vars map[string]string
		await(t, "the variables of "+uid, func() (err error) {
			vars, err = s.choose(d)
			return err
		})
		for _, a := range d.Annotations.List {
			if _, err := s.overTime(substitute(a.Expr, vars), from, now()); err != nil {
				t.Errorf("%s: annotation %s: %v", uid, a.Name, err)
			}
		}
		for _, p := range d.Panels {
			for i := range p.Targets {
				p.Targets[i].Expr = substitute(p.Targets[i].Expr, vars)
			}
			if p.Type != "row" {
				all = append(all, livePanel{p, uid + ": " + p.Title, from})
			}
		}
	}
	return all
}

// look asks all queries of a panel. It returns what is wrong with the answers.
func (p *livePanel) look(t *testing.T, s *promServer) (why string) {
	some := false
	for _, q := range p.Targets {
		var r []series
		var err error
		if q.Instant {
			r, err = s.instant(q.Expr)
		} else {
			r, err = s.overTime(q.Expr, p.from, now())
		}
		if err != nil {
			t.Fatalf("%s: query %s: %v\n%s", p.where, q.RefID, err, q.Expr)
		}
		number, nonzero := look(values(r))
		if !number {
			return "shows nothing: " + q.Expr
		}
		some = some || nonzero
	}
	if !some && !slices.Contains(mayBeZero, p.Title) {
		return "shows nothing but zeros"
	}
	return ""
}

func now() float64 { return float64(time.Now().UnixMilli()) / 1000 }

// look reports whether there is a number, and one that is not zero.
func look(values []string) (number, nonzero bool) {
	for _, v := range values {
		x, err := strconv.ParseFloat(v, 64)
		number = number || err == nil && !math.IsNaN(x)
		nonzero = nonzero || err == nil && !math.IsNaN(x) && x != 0
	}
	return number, nonzero
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// choose gives the variables of a dashboard what a reader finds chosen: all
// values where there may be several, else the first.
func (s *promServer) choose(d dashboard) (map[string]string, error) {
	vars := map[string]string{}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil {
			return nil, fmt.Errorf("variable %s asks %q", v.Name, v.Definition)
		}
		found, err := s.labels(m[2], substitute(m[1], vars))
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("variable %s has no value: %v", v.Name, err)
		}
		if !v.Multi {
			found = found[:1]
		}
		vars[v.Name] = interpolate(found, v.Multi)
	}
	return vars, nil
}

// interpolate writes values into a query as Grafana's Prometheus data source
// does: those of a variable that may have several are escaped as regular
// expressions in a string of PromQL, and several become alternatives.
func interpolate(values []string, multi bool) string {
	if !multi {
		return values[0]
	}
	var escaped []string
	for _, v := range values {
		v = strings.ReplaceAll(v, `\`, `\\\\`)
		escaped = append(escaped, regexp.MustCompile(`[$^*{}\[\]'+?.()|]`).ReplaceAllString(v, `\\$0`))
	}
	if len(escaped) == 1 {
		return escaped[0]
	}
	return "(" + strings.Join(escaped, "|") + ")"
}

// substitute replaces variables. Four scrapes are the least that Grafana takes
// for a rate.
func substitute(expr string, vars map[string]string) string {
	return usesVariable.ReplaceAllStringFunc(expr, func(m string) string {
		switch name := strings.TrimPrefix(m, "$"); name {
		case "__rate_interval":
			return "4s"
		case "__interval":
			return "1s"
		default:
			return vars[name]
		}
	})
}
