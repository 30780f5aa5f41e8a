package webtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// View is how a page is looked at.
type View struct {
	Width, Height int
	Dark          bool
}

// Page is a page of a browser.
type Page struct {
	b       *Browser
	session string
	mu      sync.Mutex
	errors  []string
}

// Open opens a page.
func (b *Browser) Open(url string, v View) *Page {
	b.t.Helper()
	var target struct{ TargetID string }
	var session struct{ SessionID string }
	b.must(b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	b.must(b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session))
	p := &Page{b: b, session: session.SessionID}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	for _, c := range []struct {
		method string
		params map[string]any
	}{
		{"Page.enable", nil}, {"Runtime.enable", nil}, {"Log.enable", nil},
		{"Emulation.setDeviceMetricsOverride", map[string]any{"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": false}},
		{"Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}}},
		{"Page.navigate", map[string]any{"url": url}},
	} {
		if c.params == nil {
			c.params = map[string]any{}
		}
		b.must(b.call(p.session, c.method, c.params, nil))
	}
	return p
}

func (b *Browser) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// event notes what the page complains about. The browser's lock is held.
func (p *Page) event(m *message) {
	var v struct {
		Type             string
		Args             []struct{ Value, Description any }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Entry struct{ Level, Text, URL string }
	}
	if json.Unmarshal(m.Params, &v) != nil {
		return
	}
	text := ""
	switch {
	case m.Method == "Runtime.exceptionThrown":
		text = v.ExceptionDetails.Text + " " + v.ExceptionDetails.Exception.Description
	case m.Method == "Runtime.consoleAPICalled" && (v.Type == "error" || v.Type == "warning" || v.Type == "assert"):
		text = fmt.Sprintf("console.%s %v", v.Type, v.Args)
	case m.Method == "Log.entryAdded" && (v.Entry.Level == "error" || v.Entry.Level == "warning"):
		text = v.Entry.Text + " " + v.Entry.URL
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, text)
}

// Errors returns exceptions, errors and warnings of the page so far, refused
// loads included.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.errors)
}

// Eval evaluates an expression and decodes its value to out, if that is not
// nil. A promise is waited for.
func (p *Page) Eval(expression string, out any) {
	p.b.t.Helper()
	if err := p.eval(expression, out); err != nil {
		p.b.t.Fatalf("%v\nof the page: %v", err, p.Errors())
	}
}

func (p *Page) eval(expression string, out any) error {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	if err := p.b.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r); err != nil {
		return err
	}
	if r.ExceptionDetails != nil {
		return fmt.Errorf("%s: %s", expression, r.ExceptionDetails.Exception.Description)
	}
	if out == nil || len(r.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(r.Result.Value, out)
}

// Wait waits until an expression is true.
func (p *Page) Wait(expression string) {
	p.b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var ok bool
		err := p.eval("!!("+expression+")", &ok)
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			var text string
			_ = p.eval("document.body.innerText", &text)
			p.b.t.Fatalf("%s does not become true (%v); the page complains %q and shows:\n%s", expression, err, p.Errors(), text)
		}
	}
}

// Middle is an expression for the middle of what a CSS selector finds first, as Click wants it.
func Middle(selector string) string {
	return fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "nearest"}); const r = e.getBoundingClientRect(); return {X: r.x + r.width / 2, Y: r.y + r.height / 2}; })()`, selector)
}

// Click clicks, with the pointer, at the place that an expression gives, until outcome is true: on a page
// that changes all the time the place may have moved before the click is there.
func (p *Page) Click(where, outcome string) {
	p.b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		var at place
		if p.eval(where, &at) == nil { // it is gone where an earlier click had its effect late
			p.mouse(at, "mouseMoved", "mousePressed", "mouseReleased")
		}
		for range 50 {
			var ok bool
			if p.eval("!!("+outcome+")", &ok) == nil && ok {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	p.Wait(outcome) // which fails, and shows the page
}

// Press presses the pointer's button at the place that an expression gives, waits until an expression is
// true, and releases it there.
func (p *Page) Press(where, meanwhile string) {
	p.b.t.Helper()
	var at place
	p.Eval(where, &at)
	p.mouse(at, "mouseMoved", "mousePressed")
	p.Wait(meanwhile)
	p.mouse(at, "mouseReleased")
}

type place struct{ X, Y float64 }

func (p *Page) mouse(at place, kinds ...string) {
	p.b.t.Helper()
	for _, kind := range kinds {
		p.b.must(p.b.call(p.session, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil))
	}
}

// Key presses a key, such as Tab or Enter.
func (p *Page) Key(key string) {
	p.b.t.Helper()
	text := map[string]string{"Enter": "\r"}[key]
	code := map[string]int{"Enter": 13, "Tab": 9, "Escape": 27}[key]
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			params["text"] = text
		}
		p.b.must(p.b.call(p.session, "Input.dispatchKeyEvent", params, nil))
	}
}

// Screenshot keeps a picture of the page in the directory that ArtifactsVar
// names, and returns it.
func (p *Page) Screenshot(t testing.TB, name string) []byte {
	t.Helper()
	var r struct{ Data string }
	p.b.must(p.b.call(p.session, "Page.captureScreenshot", map[string]any{"format": "png"}, &r))
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, name, data)
	return data
}
