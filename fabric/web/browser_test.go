package web

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gswitch/gswitch/fabric/run"
	"github.com/gswitch/gswitch/fabric/scenario"
	"github.com/gswitch/gswitch/fabric/view"
	"github.com/gswitch/gswitch/fabric/web/webtest"
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
		if err := <-done; err != context.Canceled {
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

func TestPageShowsARun(t *testing.T) {
	b := webtest.Start(t)
	url := serve(t, incast, 0.002)
	for _, dark := range []bool{false, true} {
		p := b.Open(url, webtest.View{Width: 1440, Height: 900, Dark: dark})
		p.Wait(`document.querySelectorAll("#flows tbody tr").length >= 12`)
		p.Wait(`parseFloat(document.querySelector("#facts dd").textContent) > 1`)
		time.Sleep(time.Second)
		name := map[bool]string{false: "light", true: "dark"}[dark]
		p.Screenshot(t, "serve-"+name+".png")
		p.Eval(`location.hash = "#port=leaf1:h1"`, nil)
		time.Sleep(time.Second)
		p.Screenshot(t, "serve-port-"+name+".png")
		p.Click(`#flows tbody button`)
		time.Sleep(time.Second)
		p.Screenshot(t, "serve-flow-"+name+".png")
		if e := p.Errors(); len(e) > 0 {
			t.Errorf("the page complains: %q", e)
		}
	}
}
