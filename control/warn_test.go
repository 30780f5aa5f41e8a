package control

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"gswitch/config"
)

// A daemon says in its log, once for each document, what its packet memory is too small
// for.
func TestShortagesAreLogged(t *testing.T) {
	var log bytes.Buffer
	d := &Daemon{log: slog.New(slog.NewTextHandler(&log, nil))}
	doc, err := config.Parse("document", []byte("version: 1\nmemory: {frames: 4096}\nswitches:\n  - name: s\n    crossbar: {ingress: 1MiB}\n    pfc: {classes: [3, 4]}\n    buffer: {lossless: {response: 500us}}\n    ports: [{interface: a, rate: 1Gbps}, {interface: b, rate: 1Gbps}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	d.accept(doc, doc.Resolved(), "", true)
	d.accept(doc, doc.Resolved(), "", false)
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "switches[0].crossbar") || !strings.Contains(text, "memory.frames") {
		t.Error(text)
	}
}

// It also says for each switch with lossless classes how late both ends of a link
// may be before a frame is lost.
func TestHeadroomIsLogged(t *testing.T) {
	var log bytes.Buffer
	d := &Daemon{log: slog.New(slog.NewTextHandler(&log, nil))}
	doc, err := config.Parse("document", []byte("version: 1\nswitches:\n  - name: s\n    pfc: {classes: [3]}\n    buffer: {lossless: {response: 200us}}\n    ports: [{interface: a, rate: 1Gbps}, {interface: b, rate: 1Gbps}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	d.accept(doc, doc.Resolved(), "", true)
	d.accept(doc, doc.Resolved(), "", false)
	if text := log.String(); strings.Count(text, "headroom of lossless classes") != 1 || !strings.Contains(text, "ports=a,b") || !strings.Contains(text, "within 200µs (buffer.lossless.response)") {
		t.Error(text)
	}
}
