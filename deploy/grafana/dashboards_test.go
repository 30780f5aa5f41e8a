// Package grafana holds the dashboards as code. What they are made of stands
// in test files, since no program needs it:
//
//	go generate ./deploy/grafana     # writes dashboards/*.json
//	go test ./deploy/grafana         # fails where they are not what the code says
//
// Whether every panel shows something of a running fabric, ../live_test.go
// shows.
package grafana

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

//go:generate go test -count=1 -run ^TestGenerated$ . -update

var update = flag.Bool("update", false, "write the dashboards")

func TestGenerated(t *testing.T) {
	for name, d := range map[string]dashboard{"fabric": fabric(), "switch": aSwitch(), "host": host(), "collector": collector()} {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(d); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("dashboards", name+".json")
		if *update {
			if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is not what the code says (%v): run go generate ./deploy/grafana and commit it", file, err)
		}
	}
}
