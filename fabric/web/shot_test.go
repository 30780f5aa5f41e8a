package web

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gswitch/gswitch/fabric/web/webtest"
)

func TestShot(t *testing.T) {
	if os.Getenv("E_URL") == "" {
		t.Skip()
	}
	b := webtest.Start(t)
	w, h := 1440, 900
	if s := os.Getenv("E_SIZE"); s != "" {
		a, c, _ := strings.Cut(s, "x")
		w, _ = strconv.Atoi(a)
		h, _ = strconv.Atoi(c)
	}
	p := b.Open(os.Getenv("E_URL"), webtest.View{Width: w, Height: h, Dark: os.Getenv("E_DARK") != ""})
	d, _ := time.ParseDuration(os.Getenv("E_WAIT"))
	time.Sleep(max(d, 2*time.Second))
	if js := os.Getenv("E_JS"); js != "" {
		var v any
		p.Eval(js, &v)
		t.Log(v)
		time.Sleep(2 * time.Second)
	}
	p.Screenshot(t, os.Getenv("E_NAME")+".png")
	t.Log(p.Errors())
}
