package gfabric

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gswitch/fabric/view"
	"gswitch/fabric/web"
	"gswitch/fabric/web/webtest"
)

// recordPage serves the record of a switch.
func recordPage(t *testing.T) (record, url string, length float64) {
	t.Helper()
	record, _, _ = recordedSwitch(t)
	s, err := (&replayFlags{}).newSite(t.Context(), record)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(web.NewRecord(s, false))
	t.Cleanup(func() {
		server.Close()
		s.close()
	})
	return record, server.URL, s.layout.Took
}

func answer(t *testing.T, r *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// The API of a record answers for any instant, in any order, what gfabric replay shows
// there; and nothing changes it.
func TestRecordOverTheAPI(t *testing.T) {
	record, url, length := recordPage(t)
	get := func(path string) (int, string) {
		r, err := http.Get(url + path)
		return answer(t, r, err)
	}
	var layout view.Layout
	if code, text := get("/api/layout"); code != 200 || json.Unmarshal([]byte(text), &layout) != nil || layout.Took != length || layout.On != "record" || len(layout.Nodes) != 3 {
		t.Errorf("%d %s", code, text)
	}
	call := func(at, method string) (int, string) {
		r, err := http.Post(url+"/at/"+at+"/s1/gswitch.v1.Control/"+method, "application/json", strings.NewReader("{}"))
		return answer(t, r, err)
	}
	middle := fmt.Sprintf("%.6fs", length/2)
	before := map[string]string{}
	for _, at := range []string{"1ms", middle, "1h", "1ms", middle} { // back, too
		code, text := call(at, "ListDrops")
		if was, seen := before[at]; code != 200 || seen && was != text {
			t.Errorf("at %s: %d %s, before %s", at, code, text, was)
		}
		before[at] = text
	}
	// When frames are dropped depends on when they were read: an instant with drops is looked for.
	var shown, answered struct{ Drops []map[string]any }
	at := ""
	for _, part := range []float64{0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999} {
		if len(answered.Drops) > 0 {
			break
		}
		at = fmt.Sprintf("%.6fs", part*length)
		if code, text := call(at, "ListDrops"); code != 200 || json.Unmarshal([]byte(text), &answered) != nil {
			t.Fatalf("at %s: %d %s", at, code, text)
		}
	}
	said, err := replayOf(t, record, "--at", at, "--", "gswitch", "--json", "show", "drops")
	if err != nil || json.Unmarshal([]byte(said[strings.Index(said, "{"):]), &shown) != nil || len(shown.Drops) == 0 || len(shown.Drops) != len(answered.Drops) {
		t.Fatalf("%v: %s, the API says at %s %v", err, said, at, answered.Drops)
	}
	for i, d := range shown.Drops {
		if a := answered.Drops[i]; fmt.Sprint(d["reason"], d["frames"], d["port"]) != fmt.Sprint(a["reason"], a["frames"], a["port"]) {
			t.Errorf("%v, the API says %v", d, a)
		}
	}
	var samples []view.Sample
	code, text := get("/api/at?t=1h&span=1h&n=50")
	if err := json.Unmarshal([]byte(text), &samples); err != nil || code != 200 || len(samples) != 50 {
		t.Fatalf("%d, %v: %s", code, err, text)
	}
	code, text = get(fmt.Sprintf("/api/at?t=%.9fs&span=%.9fs&n=40", length, length))
	if err := json.Unmarshal([]byte(text), &samples); err != nil || code != 200 {
		t.Fatalf("%d, %v: %s", code, err, text)
	}
	var busiest float64
	var deepest uint64
	for i, s := range samples {
		for _, p := range s.Ports {
			busiest, deepest = max(busiest, p.Sent), max(deepest, p.Queue)
		}
		if i > 0 && s.Drops < samples[i-1].Drops {
			t.Errorf("%d drops at %v, and %d before", s.Drops, s.Time, samples[i-1].Drops)
		}
	}
	// A port of 10 Mb/s with a limit of 20 kB, and what is dropped at it.
	if last := samples[len(samples)-1]; last.Drops == 0 || busiest < 5e6 || deepest < 10_000 || deepest > 20_000 {
		t.Errorf("%d drops, %v bit/s, %d bytes", last.Drops, busiest, deepest)
	}
	for path, want := range map[string]int{
		"/api/at?t=soon": 400, "/api/at?t=1s&n=0": 400, "/api/at?t=1s&n=1001": 400, "/api/at?t=-1s": 400, "/api/at?t=1s&span=x": 400,
		"/at/soon/s1/x": 400, "/at/1ms/s2/x": 422, "/api/samples": 404,
	} {
		if code, text := get(path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text := call("1ms", "FlushFDB"); code < 400 {
		t.Errorf("a record was changed: %d %s", code, text)
	}
}

// The slider shows the record at an instant: the same page as live, and the address names
// the instant.
func TestRecordOnThePage(t *testing.T) {
	b := webtest.Start(t)
	_, url, length := recordPage(t)
	p := b.Open(url+"/?at=1ms", webtest.View{Width: 1200, Height: 800})
	p.Wait(`!document.querySelector("#slider").hidden && document.querySelector("#instant").value === "0.001s"`)
	p.Wait(`document.querySelectorAll(".node").length === 3 && document.querySelector("#facts").innerText.includes("drops")`)
	drops := `[...document.querySelectorAll("#facts div")].find((d) => d.innerText.startsWith("drops")).querySelector("dd").innerText`
	p.Wait(drops + ` === "0"`)
	p.Eval(fmt.Sprintf(`(() => { const w = document.querySelector("#when"); w.value = %v; w.dispatchEvent(new Event("input")); })()`, length), nil)
	p.Wait(`Number(` + drops + `) > 0`)
	p.Wait(`location.search.includes("at=") && !location.search.includes("at=0.001s")`)
	p.Eval(`location.hash = "#port=s1:out"`, nil)
	p.Wait(`document.querySelector("#port h2").innerText === "s1 → out"`)
	p.Wait(`document.querySelectorAll("#panel .chart .line.s1[d*=L]").length > 0`)
	p.Screenshot(t, "replay.png")
	p.Eval(`(() => { const i = document.querySelector("#instant"); i.value = "1ms"; i.dispatchEvent(new Event("change")); })()`, nil)
	p.Wait(drops + ` === "0"`)
	p.Eval(`(() => { const i = document.querySelector("#instant"); i.value = "soon"; i.dispatchEvent(new Event("change")); })()`, nil)
	p.Wait(`!document.querySelector("#instant").validity.valid`)
	if e := p.Errors(); len(e) > 0 {
		t.Errorf("the page complains: %q", e)
	}
}

// A client that sends half a request does not block the others.
func TestHalfARequest(t *testing.T) {
	_, url, _ := recordPage(t)
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /at/1ms/s1/gswitch.v1.Control/ListDrops HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", c.RemoteAddr())
	line, err := bufio.NewReader(c).ReadString('\n') // the server reads the body now
	if err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	r, err := http.Post(url+"/at/1ms/s1/gswitch.v1.Control/ListDrops", "application/json", strings.NewReader("{}"))
	if code, text := answer(t, r, err); code != 200 {
		t.Errorf("%d %s", code, text)
	}
}
