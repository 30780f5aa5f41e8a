package deploy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// promServer is a real Prometheus.
type promServer struct{ url string }

// startPrometheus runs Prometheus with the configuration of this folder, but
// for where the targets are and how often they are asked.
func startPrometheus(t *testing.T, n *lab) *promServer {
	t.Helper()
	text, err := os.ReadFile("prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	doc["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
	for _, s := range doc["scrape_configs"].([]any) {
		switch job := s.(map[string]any); job["job_name"] {
		case "gswitch": // the lab's is reported by a file, as the comment there says
			job["static_configs"] = []any{}
		case "ghost":
			job["static_configs"] = []any{map[string]any{"targets": n.ghostMetrics}}
		}
	}
	dir := t.TempDir()
	write := func(name string, v []byte, err error) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, v, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	conf, err := yaml.Marshal(doc)
	write("prometheus.yml", conf, err)
	for _, rules := range []string{"rules/recording.yml", "rules/alerts.yml"} {
		data, err := os.ReadFile("prometheus/" + rules)
		write(rules, data, err)
	}
	targets, err := json.Marshal([]map[string]any{{"targets": []string{n.metrics}, "labels": map[string]string{"fabric": n.name}}})
	write("gfabric/lab.json", targets, err)

	listen := freeAddress(t)
	p := start(t, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen)
	s := &promServer{"http://" + listen}
	await(t, "prometheus", func() error {
		p.alive(t)
		r, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return err
		}
		r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return errors.New(r.Status)
		}
		return nil
	})
	return s
}

// get asks the HTTP API and decodes the data of the answer.
func (s *promServer) get(path string, query url.Values, data any) error {
	r, err := http.Get(s.url + "/api/v1/" + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer r.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", r.Status, err)
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

// series is one of a query's results.
type series struct {
	Metric map[string]string
	Value  sample
	Values []sample
}

type sample [2]any // seconds, "value"

// values returns the numbers of all series.
func values(all []series) (v []string) {
	for _, s := range all {
		for _, x := range append(s.Values, s.Value) {
			if text, ok := x[1].(string); ok {
				v = append(v, text)
			}
		}
	}
	return v
}

func (s *promServer) instant(expr string) ([]series, error) {
	var data struct{ Result []series }
	err := s.get("query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

func (s *promServer) overTime(expr string, from, to float64) ([]series, error) {
	var data struct{ Result []series }
	err := s.get("query_range", url.Values{"query": {expr}, "start": {fmt.Sprint(from)}, "end": {fmt.Sprint(to)}, "step": {"1"}}, &data)
	return data.Result, err
}

// labels returns the values of a label of the series that a selector matches.
func (s *promServer) labels(label, selector string) (v []string, err error) {
	q := url.Values{}
	if selector != "" {
		q.Set("match[]", selector)
	}
	err = s.get("label/"+label+"/values", q, &v)
	return v, err
}
