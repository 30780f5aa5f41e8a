package web

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/fabric/view"
	"gswitch/fabric/web/webtest"
)

// serve runs a scenario in virtual time, slowly and again and again, and
// serves it until the test is over.
func serve(t *testing.T, text string, pace float64) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Load(file, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	relay := view.NewRelay(view.NewLayout(s.Runs[0].Topology))
	web := New(relay, false)
	http := httptest.NewServer(web)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			_, err = run.Scenario(ctx, s, run.Options{Jobs: 1, Watch: relay.Show, Pace: pace})
		}
		done <- err
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		relay.Close()
		web.Close()
		http.Close()
	})
	return http.URL
}

const incast = `version: 1
title: Eight hosts send to one
topology: {generate: "leaf-spine(2, 4, 4)", classes: {host: {rate: 25Gbps, delay: 1us}, fabric: {rate: 25Gbps, delay: 1us}}}
switch: {buffer: {size: 1MB}, ecn: {kmin: 100KB, kmax: 400KB, pmax: 0.2}}
pfc: {enabled: true}
hosts: {cc: dcqcn}
workload:
  - {group: incast, kind: saturate, from: [h5..h12], to: [h1]}
  - {group: others, kind: saturate, from: [h13..h16], to: [h6]}
duration: 30ms
`

// shots are the themes in which pictures are kept.
var shots = []struct {
	name string
	dark bool
}{{"light", false}, {"dark", true}}

// The page of an incast: the drawing, the lists, a port and a flow that are
// clicked, what the address names, the keyboard; and nothing that the browser
// complains of.
func TestPageShowsARun(t *testing.T) {
	b := webtest.Start(t)
	url := serve(t, incast, 0.002)
	for _, shot := range shots {
		p := b.Open(url, webtest.View{Width: 1440, Height: 900, Dark: shot.dark})
		p.Wait(`document.querySelectorAll("#flows tbody tr").length === 12`)
		p.Wait(`document.querySelector("#queues tbody").innerText.includes("leaf1 → h1")`)
		p.Wait(`document.querySelectorAll("#pauses tbody tr").length > 0`)
		want := map[string]string{
			`document.querySelector("h1").innerText`: "Eight hosts send to one",
			`document.title`:                         "Eight hosts send to one – gfabric",
			`document.querySelectorAll(".node.host").length + " " + document.querySelectorAll(".node.switch").length`: "16 6",
			`"" + document.querySelectorAll("path.way").length`:                                                       "48", // directions of 24 links
			`getComputedStyle(document.documentElement).colorScheme`:                                                  shot.name,
		}
		for js, text := range want {
			var got string
			if p.Eval(js, &got); got != text {
				t.Errorf("%s: %s is %q, want %q", shot.name, js, got, text)
			}
		}
		p.Wait(`document.querySelectorAll("path.way.stopped").length > 0`)
		p.Screenshot(t, "serve-"+shot.name+".png")

		// A port, by its link: the direction towards h1 is the wider one to its
		// right; where exactly a line is, its own geometry shows.
		p.Click(`(() => { const hit = [...document.querySelectorAll("path.hit")].find((h) => h.end.peer && h.end.node === 16 && h.end.peer.node === 0);
			const q = hit.getPointAtLength(hit.getTotalLength() / 2).matrixTransform(hit.getScreenCTM()); return {X: q.x, Y: q.y}; })()`,
			`location.hash === "#port=leaf1:0" && document.querySelector("#port h2").innerText === "leaf1 → h1"`)
		p.Wait(`document.querySelector("#panel").innerText.includes("25 Gb/s") && document.querySelectorAll("#classes tbody tr").length === 1`)
		p.Wait(`document.querySelectorAll("#panel .chart .line.s1[d*=L]").length > 0`)
		p.Wait(`document.querySelectorAll("#through tbody tr").length === 8`)
		p.Screenshot(t, "serve-port-"+shot.name+".png")

		p.Click(webtest.Middle("#flows tbody button"), `location.hash.startsWith("#flow=")`)
		p.Wait(`document.querySelectorAll("#path li").length >= 4`)
		p.Wait(`document.querySelector("#panel").innerText.includes("dcqcn") && document.querySelectorAll("path.way.lit").length === document.querySelectorAll("#path li").length - 1`)
		p.Wait(`[...document.querySelectorAll("#panel .chart b")].some((b) => b.innerText === "alpha")`)
		p.Screenshot(t, "serve-flow-"+shot.name+".png")

		// The keyboard alone: Escape leaves, a node takes the focus and Enter.
		p.Key("Escape")
		p.Wait(`document.querySelector("#overview") && location.hash === ""`)
		p.Eval(`document.querySelector(".node").focus()`, nil)
		p.Key("Enter")
		p.Wait(`location.hash === "#node=h1" && document.querySelector("#ports tbody").innerText.includes("leaf1")`)
		p.Eval(`history.back()`, nil)
		p.Wait(`document.querySelector("#overview")`)

		// What an address may name.
		p.Eval(`location.hash = "#port=spine1:leaf1"`, nil)
		p.Wait(`document.querySelector("#port h2").innerText === "spine1 → leaf1"`)
		p.Eval(`location.hash = "#flow=123456789"`, nil)
		p.Wait(`document.querySelector("#flow").parentNode.innerText.includes("Not seen yet")`)
		p.Eval(`location.hash = "#port=nobody:9"`, nil)
		p.Wait(`document.querySelector("#overview")`)
		if e := p.Errors(); len(e) > 0 {
			t.Errorf("%s: the page complains: %q", shot.name, e)
		}
	}
	// A press during which samples arrive is a click all the same.
	p := b.Open(url, webtest.View{Width: 1440, Height: 900})
	p.Wait(`document.querySelectorAll("#flows tbody tr").length === 12`)
	p.Eval(`(window.seen = 0, new EventSource("api/samples").addEventListener("sample", () => { window.seen++; }))`, nil)
	p.Press(webtest.Middle("#flows tbody button"), `window.seen >= 5`)
	p.Wait(`location.hash.startsWith("#flow=")`)
	p.Wait(`document.querySelectorAll("#path li").length >= 4`) // and the page goes on

	p = b.Open(url+"/#port=leaf1:h1", webtest.View{Width: 390, Height: 844})
	p.Wait(`document.querySelector("#port h2").innerText === "leaf1 → h1"`)
	var wide bool
	if p.Eval(`document.documentElement.scrollWidth > innerWidth`, &wide); wide {
		t.Error("on a telephone the page is wider than the screen")
	}
	p.Screenshot(t, "serve-small.png")
}

const lossy = `version: 1
title: One link loses frames
topology: {generate: "leaf-spine(2, 2, 4)", classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
switch: {lossradar: {enabled: true, batch: 1ms}}
hosts: {cc: dctcp}
workload:
  - {group: all, kind: saturate, from: [h1..h4], to: [h5..h8]}
faults:
  - {kind: loss, link: "leaf1:spine1", share: 0.02}
duration: 60ms
`

// The meters of links put a layer on the drawing: which links lose frames, and why.
func TestPageShowsLosses(t *testing.T) {
	b := webtest.Start(t)
	url := serve(t, lossy, 0.004)
	for _, shot := range shots {
		p := b.Open(url, webtest.View{Width: 1440, Height: 900, Dark: shot.dark})
		p.Wait(`document.querySelectorAll("path.loss.random").length > 0`)
		p.Wait(`document.querySelector("#losses tbody") && document.querySelector("#losses tbody").innerText.includes("leaf1 → spine1")`)
		want := map[string]string{
			`[...document.querySelectorAll("#losses tbody tr")].filter((r) => r.cells[1].innerText === "random").map((r) => r.cells[0].innerText).join()`:                                                                           "leaf1 → spine1",
			`"" + [...document.querySelectorAll("#causes .cause")].some((e) => e.innerText === "random")`:                                                                                                                           "true",
			`[...document.querySelectorAll("path.loss")].filter((e) => getComputedStyle(e).stroke !== "none").length - new Set([...document.querySelectorAll("#losses tbody tr")].map((r) => r.cells[0].innerText)).size + " more"`: "0 more",
		}
		for js, text := range want {
			var got string
			if p.Eval(js, &got); got != text {
				t.Errorf("%s: %s is %q, want %q", shot.name, js, got, text)
			}
		}
		p.Screenshot(t, "serve-losses-"+shot.name+".png")
		if e := p.Errors(); len(e) > 0 {
			t.Errorf("%s: the page complains: %q", shot.name, e)
		}
	}
}

const traced = `version: 1
title: A link loses marked packets
topology: {generate: "leaf-spine(2, 3, 2)", classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
switch:
  watch: {enabled: true, sessions: [{name: everflow, to: 10.0.2.3, snap: 128, everflow: {sample: 0}}]}
hosts:
  cc: dctcp
  debug: {enabled: true, match: [{name: all, protocol: udp, dst: 10.0.1.2/32}], most: 100000}
workload:
  - {group: all, kind: saturate, from: [h1, h2], to: [h3]}
faults:
  - {kind: loss, link: "spine1:leaf2", share: 0.05}
  - {kind: loss, link: "spine2:leaf2", share: 0.05}
measure: {traces: [h6]}
duration: 60ms
`

// Packets that are traced have a table, those that were lost first; the way of one that is
// chosen is lit on the drawing, up to where it was seen last.
func TestPageShowsWays(t *testing.T) {
	b := webtest.Start(t)
	p := b.Open(serve(t, traced, 0.004), webtest.View{Width: 1440, Height: 900})
	p.Wait(`[...document.querySelectorAll("#ways tbody tr")].some((r) => r.cells[1].innerText.startsWith("lost behind spine"))`)
	var text string
	p.Eval(`document.querySelector("#ways tbody tr button").click() || "" + document.querySelector("#path").innerText.split("\\n").join(" ")`, &text)
	if v := strings.Fields(text); len(v) != 3 || v[1] != "leaf1" || !strings.HasPrefix(v[2], "spine") {
		t.Errorf("the way of a lost packet is %q", text)
	}
	p.Wait(`document.querySelectorAll("path.way.lit").length === 2`)
	if e := p.Errors(); len(e) > 0 {
		t.Errorf("the page complains: %q", e)
	}
}

const hadoop = `version: 1
title: 320 hosts
topology: {generate: "pods(5, 4, 4, 16, 16)", classes: {host: {rate: 100Gbps, delay: 1us}, fabric: {rate: 400Gbps, delay: 1us}}}
pfc: {enabled: true}
hosts: {cc: dcqcn}
switch: {ecn: {kmin: 100KB, kmax: 400KB, pmax: 0.2, at: 25Gbps}}
workload:
  - {group: background, kind: poisson, sizes: FB_Hadoop, load: 0.3}
  - {group: incast, kind: incast, from: [h1..h60], to: [h200], size: 500KB}
duration: 1ms
`

// The page of hundreds of hosts.
func TestPageShowsManyHosts(t *testing.T) {
	b := webtest.Start(t)
	url := serve(t, hadoop, 0.00002)
	for _, shot := range shots {
		p := b.Open(url, webtest.View{Width: 1440, Height: 900, Dark: shot.dark})
		p.Wait(`document.querySelectorAll(".node.host").length === 320 && document.querySelectorAll("#flows tbody tr").length === 64`)
		p.Wait(`document.querySelector("#queues tbody").innerText.includes("h200")`)
		p.Screenshot(t, "serve-320-"+shot.name+".png")
		p.Eval(`location.hash = "#port=" + document.querySelector("#queues tbody button").innerText.replace(" → ", ":")`, nil)
		p.Wait(`document.querySelectorAll("#through tbody tr").length > 0`)
		if e := p.Errors(); len(e) > 0 {
			t.Errorf("%s: the page complains: %q", shot.name, e)
		}
	}
}
