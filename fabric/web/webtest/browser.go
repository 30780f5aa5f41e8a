// Package webtest drives a headless Chromium for tests, over the pipe that
// --remote-debugging-pipe opens: messages of the Chrome DevTools Protocol, each
// ended by a zero byte.
package webtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// ArtifactsVar names the directory where screenshots are kept, if it is set.
const ArtifactsVar = "GSWITCH_ARTIFACTS"

// Browser is a Chromium that runs.
type Browser struct {
	t       testing.TB
	cmd     *exec.Cmd
	in      *os.File
	write   sync.Mutex
	mu      sync.Mutex
	next    int
	waiting map[int]chan message
	pages   map[string]*Page
	gone    chan struct{} // it has ended
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a Chromium that ends with the test. Where there is none the
// test is skipped, or fails if the variable CI is set.
func Start(t testing.TB) *Browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("GSWITCH_CI") != "" {
			t.Fatal("there is no chromium in PATH, which continuous integration must have")
		}
		t.Skip("there is no chromium in PATH to look at the page with")
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-device-scale-factor=1",
		"--no-proxy-server", "--user-data-dir="+home, "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{inR, outW}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	b := &Browser{t: t, cmd: cmd, in: inW, waiting: map[int]chan message{}, pages: map[string]*Page{}, gone: make(chan struct{})}
	go b.read(outR)
	t.Cleanup(func() {
		_ = b.send(&message{ID: 1 << 30, Method: "Browser.close"})
		inW.Close()
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(patience):
			cmd.Process.Kill()
			<-ended
		}
		<-b.gone
	})
	return b
}

// patience is how long the browser may take for anything, on the slowest of
// machines, before it counts as hung.
const patience = 3 * time.Minute

func (b *Browser) read(out *os.File) {
	defer close(b.gone)
	defer out.Close()
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if ch := b.waiting[m.ID]; m.ID != 0 && ch != nil {
			ch <- m
			delete(b.waiting, m.ID)
		} else if p := b.pages[m.Session]; p != nil {
			p.event(&m)
		}
		b.mu.Unlock()
	}
}

func (b *Browser) send(m *message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	b.write.Lock()
	defer b.write.Unlock()
	_, err = b.in.Write(append(data, 0))
	return err
}

// call calls a method and decodes its result to out, if that is not nil.
func (b *Browser) call(session, method string, params, out any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	ch := make(chan message, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.waiting[id] = ch
	b.mu.Unlock()
	if err := b.send(&message{ID: id, Method: method, Params: raw, Session: session}); err != nil {
		return err
	}
	select {
	case m := <-ch:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(m.Result, out)
	case <-b.gone:
		return fmt.Errorf("%s: the browser has ended", method)
	case <-time.After(patience):
		return fmt.Errorf("%s: the browser does not answer", method)
	}
}

// keep writes an artefact, if there is a directory for them.
func keep(t testing.TB, name string, data []byte) {
	t.Helper()
	dir := os.Getenv(ArtifactsVar)
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}
