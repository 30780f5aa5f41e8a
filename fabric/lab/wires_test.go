package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"gswitch/dataplane"
	"gswitch/fabric"
)

func wirePlan(name string) *fabric.Plan {
	topo, err := fabric.Spec{Name: name, Generate: "dumbbell(2, 1)"}.Build()
	if err != nil {
		panic(err)
	}
	plan, err := fabric.NewPlan(topo)
	if err != nil {
		panic(err)
	}
	return plan
}

// Every port of a topology is an interface fit for AF_XDP, and nothing is
// left of them.
func TestWires(t *testing.T) {
	needRoot(t)
	name := testPrefix + "wires"
	t.Cleanup(func() { Down(name, t.Logf) })
	before := traces(t)
	p := wirePlan(name)
	w, err := RaiseWires(t.Context(), p, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for n := range p.Topology.Nodes {
		for port := range p.Topology.Nodes[n].Links {
			space, dev := w.End(n, port)
			ns, err := openNamespace(space, w.s.marker())
			if err != nil {
				t.Fatal(err)
			}
			if err := inNamespace(ns, func() error { return checkWire(dev) }); err != nil {
				t.Errorf("port %d of %s: %s in %s: %v", port, p.Topology.Nodes[n].Name, dev, space, err)
			}
			ns.Close()
		}
	}
	st, err := Inspect(name)
	if err != nil || !st.Healthy {
		t.Errorf("status of wires: %+v, %v", st, err)
	}
	if _, err := RaiseWires(t.Context(), p, t.Logf); err == nil || !strings.Contains(err.Error(), "gfabric down "+name) {
		t.Errorf("wires of the same name: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	expectTraces(t, before)
}

func checkWire(dev string) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return err
	}
	if at := link.Attrs(); at.MTU != WireMTU || at.OperState != netlink.OperUp {
		return fmt.Errorf("MTU %d, state %v", at.MTU, at.OperState)
	}
	qs, err := netlink.QdiscList(link)
	if err != nil || len(qs) != 1 || qs[0].Type() != "pfifo" {
		return fmt.Errorf("queueing disciplines %v, %v", qs, err)
	}
	e, err := dataplane.OpenEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	have, err := e.FeaturesWithState(dev)
	for name, s := range have {
		if s.Available && s.Active && (unfinished(name) || name == "rx-gro") {
			return fmt.Errorf("%s is on", name)
		}
	}
	return err
}

// What a killed process leaves of its wires, the next one of that name and
// down remove.
func TestWiresKilled(t *testing.T) {
	needRoot(t)
	name := testPrefix + "wireskill"
	t.Cleanup(func() { Down(name, t.Logf) })
	before := traces(t)
	for _, cleaner := range []string{"next", "down"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"=wires:"+name)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if n, err := out.Read(make([]byte, 8)); err != nil || n == 0 {
			t.Fatalf("the child raises no wires: %v", err)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if st, err := Inspect(name); err != nil || st.Healthy {
			t.Errorf("status of wires whose maker was killed: %+v, %v", st, err)
		}
		if cleaner == "next" {
			w, err := RaiseWires(t.Context(), wirePlan(name), t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		} else if _, err := Down(name, t.Logf); err != nil {
			t.Error(err)
		}
		expectTraces(t, before)
	}
}

// Wires that are interrupted while they are made leave nothing.
func TestWiresInterrupted(t *testing.T) {
	needRoot(t)
	before := traces(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RaiseWires(ctx, wirePlan(testPrefix+"wiresint"), t.Logf); err == nil {
		t.Error("they were made")
	}
	expectTraces(t, before)
}
