package config

import (
	"fmt"
	"strings"
	"testing"
)

// An unsafe buffer is refused at its place, with what would be safe; what is
// safe then passes.
func TestUnsafeBuffers(t *testing.T) {
	const doc = `version: 1
workers: [%s]
switches:
  - name: s1
    ports:
      - {name: h1, wire: a, rate: 10Gbps, delay: 1us}
      - {name: h2, wire: a, rate: 10Gbps, delay: 1us, workers: [%s]}
    pfc: {classes: [3, 4]}
    buffer:
      size: %s
      lossless:
        %s
`
	one := func(size, lossless string) string { return fmt.Sprintf(doc, "{}", "0", size, lossless) }
	for _, v := range []struct{ doc, want string }{
		// Two frames of 1542, one of 1518, 84 of pause frame, 2500 of cable, 1250 of response.
		{one("1MiB", "{response: 1us, headroom: 8435B}"), "t.yaml:12:35: switches[0].buffer.lossless.headroom: port h1, class 3: headroom of 8435 B is not safe, the link can deliver more after a pause: at least 8436 B, or none to have it computed (auto); they are 4602 B of frames, 84 B of pause frame, 2500 B of cable and 1250 B of response (gfabric headroom shows how); allow_loss: true accepts the loss"},
		{one("1MiB", "{response: 1us, headroom: 8436B}"), ""},
		{one("1MiB", "{response: 1us, headroom: 1B, allow_loss: true}"), ""},
		{one("35261B", "{response: 1us}"), "t.yaml:10:13: switches[0].buffer.size: buffer of 35261 B is too small"},
		{one("35262B", "{response: 1us}"), ""},
		{one("64KiB", "{response: 1us, xoff: 31793B}"), "t.yaml:12:31: switches[0].buffer.lossless.xoff: port h1, class 3: XOFF threshold of 31793 B is above the shared pool of 31792 B: at most 31792 B"},
		{one("64KiB", "{response: 1us, xoff: 31792B}"), ""},
		{strings.NewReplacer("delay: 1us", "delay: 600000h", "10Gbps", "800Gbps").Replace(one("1MiB", "{response: 1us}")), "the buffer of 1048576 B: shorten delay or response"},
		{fmt.Sprintf(doc, "{}, {}", "1", "64KiB", "{response: 1us}"), "(each of 2 workers has its share of the buffer); size: at least 70524B"},
	} {
		_, err := Parse("t.yaml", []byte(v.doc))
		if (err == nil) != (v.want == "") || err != nil && !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s\n%v\nwant %s", v.doc, err, v.want)
		}
	}
}

// Where the buffer is what the memory holds, only headroom can be judged.
func TestUnsafeHeadroomWithoutSize(t *testing.T) {
	const doc = `version: 1
switches:
  - name: s1
    ports: [{name: h1, interface: e1, rate: 10Gbps}]
    pfc: {classes: [3]}
    buffer: {lossless: {headroom: %s}}
`
	if _, err := Parse("t.yaml", fmt.Appendf(nil, doc, "1KB")); err == nil || !strings.Contains(err.Error(), "t.yaml:6:35: switches[0].buffer.lossless.headroom") {
		t.Error(err)
	}
	if _, err := Parse("t.yaml", fmt.Appendf(nil, doc, "1MiB")); err != nil {
		t.Error(err)
	}
}
