package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	raised "gswitch/fabric/lab"
	"gswitch/fabric/pauses"
	"gswitch/fabric/pauses/query"
	"gswitch/wire"
)

// losslessFabric is a fabric of daemons, one for each switch, that route, with
// class 3 under priority flow control.
type losslessFabric struct {
	t    *testing.T
	name string
	st   raised.Status
}

// raiseLossless raises a fabric for the time of the test. A pause lasts up to
// 65535 times 512 bits, 1.7 s at this rate, and is renewed at half of it: a
// switch may be kept from its processor for long.
func raiseLossless(t *testing.T, topology string) *losslessFabric {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces and AF_XDP")
	}
	kind, _, _ := strings.Cut(topology, ":")
	f := &losslessFabric{t: t, name: fmt.Sprintf("e2e-%s-%d", kind, os.Getpid())}
	raiseFabric(t, f.name, topology, "--mode", "l3", "--rate", "20Mbps", "--lossless", "3", "--processes", "each")
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command(gfabric, "pfc", "trace", f.name).CombinedOutput()
			t.Logf("gfabric pfc trace:\n%s", out)
		}
	})
	var all []raised.Status
	if code := f.decode(&all, "status", "--json"); code != 0 {
		t.Fatalf("gfabric status: exit code %d", code)
	}
	at := slices.IndexFunc(all, func(s raised.Status) bool { return s.Name == f.name })
	if at < 0 {
		t.Fatalf("gfabric status does not have %s", f.name)
	}
	f.st = all[at]
	return f
}

// decode reads the JSON that a verb of gfabric prints.
func (f *losslessFabric) decode(v any, args ...string) (code int) {
	f.t.Helper()
	c := exec.Command(gfabric, args...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	if wrong := json.Unmarshal(out, v); wrong != nil {
		f.t.Fatalf("gfabric %v: %v in\n%s%s", args, wrong, out, said.String())
	}
	return c.ProcessState.ExitCode()
}

// text is what a verb prints, and its exit code.
func (f *losslessFabric) text(args ...string) (string, int) {
	f.t.Helper()
	c := exec.Command(gfabric, args...)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// daemon is the gswitch of a switch.
func (f *losslessFabric) daemon(name string) *daemon {
	f.t.Helper()
	for _, p := range f.st.Processes {
		if slices.Equal(p.Switches, []string{name}) {
			return &daemon{Cmd: exec.Command(gswitch), t: f.t, socket: p.Socket}
		}
	}
	f.t.Fatalf("no process has switch %s alone: %+v", name, f.st.Processes)
	return nil
}

// host is one of the fabric's hosts, and the address and the MAC address of its
// switch, by which frames go on.
func (f *losslessFabric) host(name string) (h *host, status raised.HostStatus, gateway wire.MAC) {
	f.t.Helper()
	for _, s := range f.st.Hosts {
		if s.Name != name {
			continue
		}
		if s.Interface != "eth0" {
			f.t.Fatalf("%s has %s", name, s.Interface)
		}
		for _, p := range f.st.Processes {
			if !slices.Contains(p.Switches, s.Switch) {
				continue
			}
			c, err := config.Load(p.Config)
			if err != nil {
				f.t.Fatal(err)
			}
			mac, err := wire.ParseMAC(s.MAC)
			if err != nil {
				f.t.Fatal(err)
			}
			return &host{ns: s.Namespace, mac: mac}, s, wire.MAC(*c.Switches[0].MAC)
		}
	}
	f.t.Fatalf("there is no host %s", name)
	return nil, raised.HostStatus{}, wire.MAC{}
}

// send sends frames of class 3 from a host to an address, so many in a second,
// until the test ends. A host that is paused does not mind.
func (f *losslessFabric) send(from string, to [4]byte, perSecond int) {
	f.t.Helper()
	h, s, gateway := f.host(from)
	way := flow{dst: gateway, src: h.mac, srcIP: s.Addresses[0].Addr().As4(), dstIP: to, dstPort: 9004, dscp: 3 << 3, size: 1514}
	sender := &stream{t: f.t, from: h.raw(f.t, etherTest), flow: way, quit: make(chan struct{}), senderDone: make(chan struct{})}
	go sender.send(perSecond)
	f.t.Cleanup(func() {
		close(sender.quit)
		<-sender.senderDone
	})
}

// storm lets a host ask for a pause of class 3 again and again, until the test
// ends.
func (f *losslessFabric) storm(name string) {
	f.t.Helper()
	h, _, _ := f.host(name)
	r, content := h.raw(f.t, etherTest), pfcFrame(h.mac, 3, 0xffff)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			if err := r.send(content); err != nil {
				f.t.Errorf("a pause of %s: %v", name, err)
				return
			}
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	f.t.Cleanup(func() {
		close(quit)
		<-done
	})
}

// unwatch takes the watchdog from a port.
func (f *losslessFabric) unwatch(d *daemon, port string) {
	f.t.Helper()
	client := control.Dial(d.socket)
	doc, err := client.GetConfig(f.t.Context(), &api.GetConfigRequest{})
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := config.Parse("in force", []byte(doc.Yaml))
	if err != nil {
		f.t.Fatal(err)
	}
	p, err := c.Switches[0].FindPort(port)
	if err != nil {
		f.t.Fatal(err)
	}
	p.Watchdog = &config.Watchdog{Action: "off"}
	if _, err := client.Apply(f.t.Context(), &api.ApplyRequest{Yaml: string(c.YAML())}); err != nil {
		f.t.Fatal(err)
	}
}

// below finds the branches under b by their "which port paused which".
func below(b *pauses.Branch, who string) *pauses.Branch {
	for _, c := range b.Branches {
		by, _, _ := strings.Cut(c.By, ">")
		if by+" paused "+c.At.Node == who {
			return c
		}
	}
	return nil
}

// A host whose card has gone mad asks for pauses without end. Another that
// sends to it is paused by two switches in turn, and so is a third that has
// nothing to do with either. The trace has the culprit as its root and those
// two at its ends; nothing waits in a circle.
func TestPauseStormIsTraced(t *testing.T) {
	f := raiseLossless(t, "dumbbell:2,2")
	s2 := f.daemon("s2")
	f.unwatch(s2, "h3") // which would end it
	f.storm("h3")
	eventually(t, "s2 pauses for h3", func() error {
		for _, c := range show(s2, &api.PFC{}, "pfc", "h3").Classes {
			if c.Class == 3 && c.Paused {
				return nil
			}
		}
		return errors.New("it does not")
	})
	// Less than the link between the switches has, so that what it has to hold
	// back follows from h3.
	_, h3, _ := f.host("h3")
	_, h4, _ := f.host("h4")
	f.send("h1", h3.Addresses[0].Addr().As4(), 800)
	f.send("h2", h4.Addresses[0].Addr().As4(), 600)

	eventually(t, "the storm has reached both hosts", func() error {
		var tr pauses.Trace
		if code := f.decode(&tr, "pfc", "trace", f.name, "--json"); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		for _, r := range tr.Roots {
			if r.Why != pauses.Asked || r.At.Node != "h3" || r.Class != 3 {
				continue
			}
			at := r
			for _, who := range []string{"h3 paused s2", "s2 paused s1"} {
				if at = below(at, who); at == nil {
					return fmt.Errorf("it is not there yet that %s", who)
				}
			}
			if below(at, "s1 paused h1") == nil || below(at, "s1 paused h2") == nil {
				return errors.New("s1 does not pause both hosts")
			}
			return nil
		}
		return fmt.Errorf("h3 is no root of %d pauses", len(tr.Pauses))
	})
	out, code := f.text("pfc", "trace", f.name)
	if code != 0 || !strings.Contains(out, "h3 class 3: asks by itself") || !strings.Contains(out, "for s2>h3 (") {
		t.Errorf("gfabric pfc trace: exit code %d\n%s", code, out)
	}
	t.Logf("\n%s", out)

	asks, asked := false, false
	for _, p := range show(s2, &api.Pauses{}, "pauses").Pauses {
		asks = asks || !p.Asked && p.Port == "h3" && p.Class == 3
		asked = asked || p.Asked && p.Port == "s1" && len(p.Causes) > 0 && p.Causes[0].Port == "h3" && p.Held > 0
	}
	if !asks || !asked {
		t.Errorf("s2 remembers that h3 asked: %v, that it asked s1 for what waits for h3: %v\n%s", asks, asked, s2.do("show", "pauses"))
	}
	eventually(t, "the queue towards h3 is overdue", func() error {
		for _, w := range show(s2, &api.Waits{}, "deadlock").Waits {
			if w.Port == "h3" && w.Class == 3 && w.Overdue && slices.Contains(w.From, "s1") {
				return nil
			}
		}
		return errors.New(s2.do("show", "deadlock"))
	})
	if out, code := f.text("pfc", "deadlock", f.name); code != 0 || !strings.Contains(out, "no queues wait for each other in a circle") || !strings.Contains(out, "s2>h3") {
		t.Errorf("gfabric pfc deadlock: exit code %d\n%s", code, out)
	}
}

// Routes of three switches that lead in a circle make a deadlock of class 3 of
// what is sent there: each link waits for the next. It is found as long as it
// lasts, which is for ever, at each switch and by the fabric.
func TestDeadlockIsFound(t *testing.T) {
	f := raiseLossless(t, "ring:3")
	if out, code := f.text("pfc", "deadlock", f.name); code != 0 || !strings.Contains(out, "no queues wait for each other in a circle") {
		t.Fatalf("before anything is sent: exit code %d\n%s", code, out)
	}
	for i := range 3 {
		at, to := fmt.Sprintf("s%d", i+1), fmt.Sprintf("s%d", (i+1)%3+1)
		f.daemon(at).do("add", "route", "10.99.0.0/16", "via", f.link(to, at))
	}
	for _, h := range []string{"h1", "h2", "h3"} {
		f.send(h, [4]byte{10, 99, 0, 1}, 1500)
	}
	type circles struct {
		Circles []query.Circle
	}
	eventually(t, "a deadlock of a second", func() error {
		var w circles
		code := f.decode(&w, "pfc", "deadlock", f.name, "--after", "1s", "--json")
		if code == 0 {
			return fmt.Errorf("none, of %d circles", len(w.Circles))
		}
		if code != 1 || len(w.Circles) != 1 || w.Circles[0].Class != 3 || len(w.Circles[0].Ports) != 3 {
			t.Fatalf("exit code %d, %+v", code, w)
		}
		return nil
	})
	out, code := f.text("pfc", "deadlock", f.name)
	if code != 1 || !strings.Contains(out, "DEADLOCK for ") || !strings.Contains(out, "class 3: s1>s2, s2>s3, s3>s1") || !strings.Contains(out, "fabric "+f.name+" is in a deadlock") {
		t.Errorf("gfabric pfc deadlock: exit code %d\n%s", code, out)
	}
	t.Logf("\n%s", out)
	for i := range 3 {
		at, to, from := fmt.Sprintf("s%d", i+1), fmt.Sprintf("s%d", (i+1)%3+1), fmt.Sprintf("s%d", (i+2)%3+1)
		found := false
		for _, w := range show(f.daemon(at), &api.Waits{}, "deadlock", to).Waits {
			found = found || w.Class == 3 && w.Overdue && slices.Contains(w.From, from)
		}
		if text := f.daemon(at).do("show", "deadlock"); !found || !strings.Contains(text, "gfabric pfc deadlock joins the switches") {
			t.Errorf("at %s:\n%s", at, text)
		}
	}
	out, code = f.text("pfc", "trace", f.name)
	if code != 0 || !strings.Contains(out, "s2 paused s1 class 3") || !strings.Contains(out, "s3 paused s2 class 3") || !strings.Contains(out, "s1 paused s3 class 3") {
		t.Errorf("gfabric pfc trace: exit code %d\n%s", code, out)
	}
	t.Logf("\n%s", out)
}

// link is the address of a switch's port towards a neighbour.
func (f *losslessFabric) link(at, to string) string {
	f.t.Helper()
	for _, p := range f.st.Processes {
		if !slices.Contains(p.Switches, at) {
			continue
		}
		c, err := config.Load(p.Config)
		if err != nil {
			f.t.Fatal(err)
		}
		for i := range c.Switches[0].Ports {
			if q := &c.Switches[0].Ports[i]; q.Name == to && len(q.Addresses) > 0 {
				return q.Addresses[0].Addr().String()
			}
		}
	}
	f.t.Fatalf("%s has no address towards %s", at, to)
	return ""
}
