package gcollect

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"gswitch/collect"
)

func TestCountersAreShown(t *testing.T) {
	var b bytes.Buffer
	showCounters(&b, &collect.CountState{Counters: []collect.Counter{
		{Name: "all", Filter: "tcp", Packets: 9, Bytes: 900},
		{Name: "web", Filter: "tcp.dstport == 443", Since: time.Unix(0, 0), Packets: 7, Bytes: 700},
	}})
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"all 9 900 --count tcp", "web 7 700 1970-01-01 00:00:00.000 tcp.dstport == 443"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestCountIsChecked(t *testing.T) {
	for args, why := range map[string]string{"add web": "missing: FILTER", "remove": "missing: NAME", "list web": "web"} {
		root := Command("test")
		root.SetArgs(append([]string{"count"}, strings.Fields(args)...))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", args, err, why)
		}
	}
}
