package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/config"
	"gswitch/control/privilege"
	"gswitch/section"
)

// stub is a daemon that notes what is called.
type stub struct {
	calls []string
	start error
	read  chan string // paths of ReadFile
}

func (s *stub) Start() error         { s.calls = append(s.calls, "start"); return s.start }
func (s *stub) Need() privilege.Need { return privilege.Need{} }
func (s *stub) Stop() error          { s.calls = append(s.calls, "stop"); return nil }

func (s *stub) Serve(ctx context.Context, listeners []net.Listener) error {
	s.calls = append(s.calls, "serve")
	<-ctx.Done()
	return listeners[0].Close()
}

func (s *stub) ReadFile(path string) ([]section.Change, []string, error) {
	s.read <- path
	return nil, nil, nil
}

// runOf is a run of a stub in a directory of its own.
func runOf(t *testing.T, s *stub) *Run {
	return &Run{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Control: config.Control{Socket: filepath.Join(t.TempDir(), "s.sock")}, File: "file.yaml",
		Open: func(context.Context) (Daemon, error) { return s, nil }}
}

// lines is a writer that hands over what is written.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func TestRunUntilTheEnd(t *testing.T) {
	s := &stub{read: make(chan string)}
	r := runOf(t, s)
	ctx, end := context.WithCancel(t.Context())
	out, ended := make(lines), make(chan error)
	go func() { ended <- r.UntilSignal(ctx, &Privileges{keep: true}, out, "h1") }()
	if got, want := <-out, "ready: h1; control socket "+r.Control.Socket+"\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if err := unix.Kill(os.Getpid(), unix.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := <-s.read; got != "file.yaml" {
		t.Errorf("a hangup had %q read", got)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := len(s.calls); got != 3 || s.calls[0] != "start" || s.calls[1] != "serve" || s.calls[2] != "stop" {
		t.Errorf("called: %v", s.calls)
	}
}

// A signal ends a daemon, too.
func TestRunUntilSIGTERM(t *testing.T) {
	out, ended := make(lines), make(chan error)
	go func() { ended <- runOf(t, &stub{}).UntilSignal(t.Context(), &Privileges{keep: true}, out, "h1") }()
	<-out
	if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What does not come to serve leaves no socket behind, and is stopped if it was opened.
func TestRunThatFails(t *testing.T) {
	failed := errors.New("no such interface")
	for name, open := range map[string]func(s *stub) (Daemon, error){
		"open":  func(*stub) (Daemon, error) { return nil, failed },
		"start": func(s *stub) (Daemon, error) { s.start = failed; return s, nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{}
			r := runOf(t, s)
			r.Open = func(context.Context) (Daemon, error) { return open(s) }
			var out bytes.Buffer
			if err := r.UntilSignal(t.Context(), &Privileges{keep: true}, &out, "h1"); !errors.Is(err, failed) || out.Len() > 0 {
				t.Errorf("ended with %v, printed %q", err, &out)
			}
			if _, err := os.Stat(r.Control.Socket); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket: %v", err)
			}
			if stopped := len(s.calls) > 0 && s.calls[len(s.calls)-1] == "stop"; stopped != (name == "start") {
				t.Errorf("called: %v", s.calls)
			}
		})
	}
}

// The end of a wait for an interface is no error.
func TestRunThatIsEndedWhileItWaits(t *testing.T) {
	r := runOf(t, &stub{})
	ctx, end := context.WithCancel(t.Context())
	r.Open = func(ctx context.Context) (Daemon, error) {
		end()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := r.UntilSignal(ctx, &Privileges{keep: true}, io.Discard, "h1"); err != nil {
		t.Error(err)
	}
}
