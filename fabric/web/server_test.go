package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gswitch/fabric/view"
)

// feed is a source whose samples the test hands out.
type feed struct {
	layout atomic.Pointer[view.Layout]
	next   chan *view.Sample
	asked  atomic.Int64
}

func newFeed() *feed {
	f := &feed{next: make(chan *view.Sample)}
	f.layout.Store(&view.Layout{Name: "first", On: "sim", Scale: 1,
		Nodes: []view.Node{{Name: "h1", Kind: "host"}, {Name: "s1", Kind: "switch", Tier: 1}},
		Links: []view.Link{{A: view.End{Node: 0}, B: view.End{Node: 1}, Rate: 1e9}}})
	return f
}

func (f *feed) Layout() *view.Layout { return f.layout.Load() }
func (f *feed) Sample(ctx context.Context) (*view.Sample, error) {
	f.asked.Add(1)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case s := <-f.next:
		if s.Done {
			return s, io.EOF
		}
		return s, nil
	}
}

// site serves a feed.
func site(t *testing.T) (*feed, *Server, string) {
	f := newFeed()
	s := New(f, false)
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	return f, s, h.URL
}

// events reads the stream of a viewer: name and data of each event.
type events struct {
	body io.Closer
	r    *bufio.Scanner
}

func watch(t *testing.T, url string) *events {
	t.Helper()
	r, err := http.Get(url + "/api/samples")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Header.Get("Content-Type"); r.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("%s, %s", r.Status, got)
	}
	t.Cleanup(func() { r.Body.Close() })
	s := bufio.NewScanner(r.Body)
	s.Buffer(nil, 64<<20)
	return &events{r.Body, s}
}

func (e *events) next(t *testing.T) (name, data string) {
	t.Helper()
	for e.r.Scan() {
		line := e.r.Text()
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			name = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			return name, v
		}
	}
	return "", ""
}

// sample returns the time of the next sample.
func (e *events) sample(t *testing.T) float64 {
	t.Helper()
	for {
		name, data := e.next(t)
		if name == "" {
			t.Fatal("the stream has ended")
		}
		if name == "sample" {
			var at float64
			if _, err := fmt.Sscanf(data, `{"t":%g,`, &at); err != nil {
				t.Fatalf("%v in %.80s", err, data)
			}
			return at
		}
	}
}

func TestStream(t *testing.T) {
	f, s, url := site(t)
	select {
	case <-s.FirstViewer():
		t.Fatal("there is a viewer already")
	case <-time.After(20 * time.Millisecond):
	}
	if f.asked.Load() != 0 {
		t.Error("the source is asked though nobody looks")
	}
	v := watch(t, url)
	<-s.FirstViewer()
	name, data := v.next(t)
	if name != "layout" || !strings.Contains(data, `"name":"first"`) {
		t.Fatalf("%s: %s", name, data)
	}
	f.next <- &view.Sample{Time: 1}
	if got := v.sample(t); got != 1 {
		t.Fatalf("sample of %v", got)
	}
	// Another run: its layout comes before its samples.
	second := *f.Layout()
	second.Name = "second"
	f.layout.Store(&second)
	f.next <- &view.Sample{Time: 2}
	if name, data = v.next(t); name != "layout" || !strings.Contains(data, `"name":"second"`) {
		t.Fatalf("%s: %s", name, data)
	}
	if got := v.sample(t); got != 2 {
		t.Fatalf("sample of %v", got)
	}
	// The end stays for those who come later.
	f.next <- &view.Sample{Time: 3, Done: true}
	if got := v.sample(t); got != 3 {
		t.Fatalf("sample of %v", got)
	}
	if got := watch(t, url).sample(t); got != 3 {
		t.Fatalf("who comes later gets a sample of %v", got)
	}
}

// A viewer that does not read slows neither the source nor other viewers, and
// what it missed it never gets.
func TestSlowViewer(t *testing.T) {
	f, s, url := site(t)
	s.patience = time.Hour
	address := strings.TrimPrefix(url, "http://")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /api/samples HTTP/1.0\r\nHost: "+address+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-s.FirstViewer()
	quick := watch(t, url)
	big := &view.Sample{Run: strings.Repeat("x", 3<<20)} // some are more than the kernel holds for a viewer that does not read
	const n = 12
	for k := 1; k <= n; k++ {
		v := *big
		v.Time = float64(k)
		f.next <- &v // taken, though the slow one stands
		if got := quick.sample(t); got != float64(k) {
			t.Fatalf("the quick viewer got the sample of %v in place of %d", got, k)
		}
	}
	slow := &events{c, bufio.NewScanner(c)}
	slow.r.Buffer(nil, 64<<20)
	var got []float64
	for len(got) == 0 || got[len(got)-1] != n {
		got = append(got, slow.sample(t))
	}
	if len(got) > n*2/3 {
		t.Errorf("the slow viewer got %v: it missed too few", got)
	}
}

// A viewer that takes nothing at all is sent away.
func TestStuckViewer(t *testing.T) {
	f, s, url := site(t)
	s.patience = 50 * time.Millisecond
	address := strings.TrimPrefix(url, "http://")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /api/samples HTTP/1.0\r\nHost: "+address+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-s.FirstViewer()
	big := &view.Sample{Run: strings.Repeat("x", 4<<20)}
	for s.Viewers() > 0 {
		select {
		case f.next <- big:
		case <-time.After(20 * time.Millisecond): // no more requests
		}
	}
}

// Viewers come and go; one that has gone is forgotten.
func TestViewersLeave(t *testing.T) {
	f, s, url := site(t)
	for range 5 {
		v := watch(t, url)
		v.next(t)
		v.body.Close()
	}
	last := watch(t, url)
	last.next(t)
	for k := 1.0; s.Viewers() > 1; k++ {
		f.next <- &view.Sample{Time: k}
	}
	s.Close()
	for {
		if name, _ := last.next(t); name == "" {
			break
		}
	}
}

func TestEvery(t *testing.T) {
	_, _, url := site(t)
	for _, bad := range []string{"x", "-1s", "0s", "2h"} {
		r, err := http.Get(url + "/api/samples?every=" + bad)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "is not a time such as 500ms") {
			t.Errorf("every=%s: %s: %s", bad, r.Status, text)
		}
	}
}

// Nothing is served under another machine's name, nothing may be loaded from
// elsewhere, and nothing is.
func TestPolicy(t *testing.T) {
	_, _, url := site(t)
	for host, want := range map[string]int{"": 200, "localhost:1": 200, "a.localhost": 200, "[::1]:80": 200, "127.9.9.9": 200, "evil.example": 403, "127.0.0.1.evil.example:80": 403, "10.0.0.1": 403} {
		r, err := http.NewRequest("GET", url+"/api/layout", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("%q: %s, want %d", host, a.Status, want)
		}
	}
	remote := New(newFeed(), true)
	defer remote.Close()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "http://lab.example/", nil)
	if remote.ServeHTTP(w, r); w.Code != 200 || !strings.Contains(w.Body.String(), "<title>gfabric</title>") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if p := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") || strings.Contains(p, "unsafe") || strings.Contains(p, "*") {
		t.Errorf("policy %q", p)
	}
	_ = fs.WalkDir(page, "page", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := page.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.ReplaceAll(string(data), "http://www.w3.org/2000/svg", ""), "\n") {
			if strings.Contains(line, "://") {
				t.Errorf("%s names another place: %s", path, line)
			}
		}
		return nil
	})
}
