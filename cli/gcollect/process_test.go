package gcollect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gswitch/control/cli"
	"gswitch/control/privilege"
)

// kept is privileges that are not dropped, which would end those of the test.
func kept(t *testing.T) *cli.Privileges {
	t.Helper()
	var keep cli.Privileges
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	keep.Flag(f)
	if err := f.Parse([]string{"--keep-privileges"}); err != nil {
		t.Fatal(err)
	}
	return &keep
}

// A process says that it is ready, answers for its metrics, and ends with the job that ends first, whose error it
// returns when all have ended.
func TestProcess(t *testing.T) {
	p := newProcess(slog.New(slog.NewTextHandler(io.Discard, nil)))
	at, err := p.serveMetrics("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	failed, other := errors.New("the disk is full"), false
	p.add(func(context.Context) error {
		for path, want := range map[string]string{"/metrics": "go_gc_duration_seconds", "/healthz": "ok\n"} {
			r, err := http.Get("http://" + at + path)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s: %v, %.100q", path, err, text)
			}
		}
		return failed
	}, func(ctx context.Context) error {
		<-ctx.Done()
		other = true
		return nil
	})
	var out bytes.Buffer
	if err := p.run(t.Context(), kept(t), privilege.Need{}, &out, "c1", "metrics at "+at); !errors.Is(err, failed) || !other {
		t.Errorf("ended with %v; the other job has ended: %v", err, other)
	}
	if want := "gcollect c1: ready; metrics at " + at + "\n"; out.String() != want {
		t.Errorf("printed %q, want %q", &out, want)
	}
}
