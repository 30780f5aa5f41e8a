package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gswitch/fabric/view"
	"gswitch/fabric/web/webtest"
)

// The page and the samples of a fabric whose hosts are namespaces: two send to
// one over TCP, and the port towards it is where both share a link.
func TestServeLab(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for network namespaces and AF_XDP sockets")
	}
	b := webtest.Start(t)
	name := fmt.Sprintf("e2e-serve-%d", os.Getpid())
	raiseFabric(t, name, "star:3", "--rate", "20Mbps")
	background(t, "exec", "--name", name, "h3", "--", gfabric, "load", "serve")
	for _, h := range []string{"h1", "h2"} {
		eventually(t, h+" reaches h3", func() error {
			return exec.Command(gfabric, "exec", "--name", name, h, "--", gfabric, "load", "stream", "h3", "--bytes", "1000", "--time", "10s").Run()
		})
		background(t, "exec", "--name", name, h, "--", gfabric, "load", "stream", "h3", "--time", "10m")
	}

	// gfabric watch: what the port towards h3 sends fills its link.
	var at view.End
	eventually(t, "the port towards h3 to be loaded", func() error {
		out, err := exec.Command(gfabric, "watch", name, "-n", "1", "--json").Output()
		if err != nil {
			t.Fatalf("gfabric watch: %v", err)
		}
		var s view.Sample
		if err := json.Unmarshal(out, &s); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		for _, p := range s.Ports {
			if p.Peak > 10_000 && p.Sent > 15e6 && p.Up && len(p.Class) > 0 {
				at = p.End
				return nil
			}
		}
		return fmt.Errorf("none is, in %s", out)
	})
	if at.Node != 3 || at.Port != 2 {
		t.Errorf("port %d of node %d is loaded, want the port of s1 towards h3", at.Port, at.Node)
	}

	url := served(t, name)
	p := b.Open(url+"/#port=s1:h3", webtest.View{Width: 1280, Height: 800})
	p.Wait(`document.querySelectorAll(".node.host").length === 3`)
	p.Wait(`document.querySelector("#port h2").innerText === "s1 → h3"`)
	p.Wait(`document.querySelectorAll("#classes tbody tr").length > 0`)
	p.Wait(`parseFloat(document.querySelector("#panel dl div:nth-child(2) dd").innerText) > 10`) // Mb/s
	p.Wait(`document.querySelectorAll("#panel .chart .line.s0[d*=L]").length > 0`)
	p.Screenshot(t, "serve-lab-port.png")
	p.Click(webtest.Middle(".back"), `document.querySelector("#queues tbody").innerText.includes("s1 → h3")`)
	p.Wait(`document.querySelector("#noflows").innerText.includes("see the ports")`)
	p.Click(webtest.Middle(`.node.host rect, .node.host circle`), `location.hash === "#node=h1" && document.querySelector("#ports tbody").innerText.includes("s1")`)
	p.Screenshot(t, "serve-lab.png")
	if e := p.Errors(); len(e) > 0 {
		t.Errorf("the page complains: %q", e)
	}
}

// background starts gfabric and stops it with the test.
func background(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(gfabric, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
	})
	return c
}

// served starts gfabric serve and returns where the page is.
func served(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command(gfabric, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGINT)
		if err := c.Wait(); err != nil {
			t.Errorf("gfabric serve after Ctrl-C: %v", err)
		}
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "open "); ok {
			go func() {
				for lines.Scan() { // it must not stand at a full pipe
				}
			}()
			return url
		}
	}
	t.Fatal("gfabric serve does not say where the page is")
	return ""
}
