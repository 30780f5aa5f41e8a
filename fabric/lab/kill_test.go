package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gswitch/fabric"
	"gswitch/fabric/load"
)

// child is this binary as a program of its own, see childEnv.
func child(what string) int {
	verb, arg, _ := strings.Cut(what, ":")
	ctx := context.Background()
	var err error
	switch verb {
	case "stream":
		_, err = load.Stream(ctx, load.StreamOptions{Address: arg, Bytes: 2 << 20, Streams: 2})
	case "owned":
		topo, e := fabric.Spec{Name: arg, Generate: "star(1)"}.Build()
		if e != nil {
			err = e
			break
		}
		plan, _ := fabric.NewPlan(topo)
		l, _ := NewLayout(plan, Options{Owned: true})
		if err = Up(ctx, l, os.Args[0], func(string, ...any) {}); err == nil {
			fmt.Println("up")
			select {} // until it is killed
		}
	case "wires":
		if _, err = RaiseWires(ctx, wirePlan(arg), func(string, ...any) {}); err == nil {
			fmt.Println("up")
			select {} // until it is killed
		}
	case "exec":
		err = Exec(arg, "h1", []string{"sh", "-c", "ls /sys/class/net; grep -w s1 /etc/hosts; exit 42"})
	case "up":
		topo, e := fabric.Spec{Name: arg, Generate: "dumbbell(2, 2)"}.Build()
		if e != nil {
			err = e
			break
		}
		plan, _ := fabric.NewPlan(topo)
		l, _ := NewLayout(plan, Options{Each: true})
		err = Up(ctx, l, os.Args[0], func(string, ...any) {})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A gfabric killed at any moment leaves nothing that the next down does not
// find, and takes nothing away.
func TestKilled(t *testing.T) {
	needRoot(t)
	name := testPrefix + "killed"
	t.Cleanup(func() { Down(name, t.Logf) })
	before := traces(t)
	rnd := rand.New(rand.NewSource(7))
	for i := range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"=up:"+name, stubEnv+"=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The child needs some 100 ms for all. Where it is hit is chance; what
		// must hold is the same everywhere.
		time.Sleep(time.Duration(rnd.Intn(150)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		left := len(traces(t)) - len(before)
		if i%4 == 3 { // the next up cleans as well
			l := layoutOf(t, "killed", "star(1)", fabric.L2, Options{})
			t.Setenv(stubEnv, "1")
			if err := Up(t.Context(), l, os.Args[0], t.Logf); err != nil && !errors.Is(err, ErrUp) {
				t.Fatalf("up after a kill that left %d traces: %v", left, err)
			}
		}
		if _, err := Down(name, func(string, ...any) {}); err != nil {
			t.Fatalf("down after a kill that left %d traces: %v", left, err)
		}
		t.Logf("killed with %d traces", left)
		expectTraces(t, before)
	}
}

// A fabric that is raised for the time of a program is whole while that runs.
// If it is killed, status shows it, and the next up of that name removes the rest.
func TestMakerKilled(t *testing.T) {
	needRoot(t)
	name := testPrefix + "owned"
	t.Cleanup(func() { Down(name, t.Logf) })
	before := traces(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=owned:"+name, stubEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 8)); err != nil || n == 0 {
		t.Fatalf("the child does not raise its fabric: %v", err)
	}
	l := layoutOf(t, "owned", "star(1)", fabric.L2, Options{})
	t.Setenv(stubEnv, "1")
	if err := Up(t.Context(), l, os.Args[0], t.Logf); !errors.Is(err, ErrUp) {
		t.Errorf("up beside a maker that runs: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	st, err := Inspect(name)
	if err != nil || st.Healthy || len(st.Problems) != 1 || !strings.Contains(st.Problems[0], fmt.Sprintf("process %d, which raised it for itself, was killed", cmd.Process.Pid)) {
		t.Errorf("status of a fabric whose maker was killed: %+v, %v", st, err)
	}
	if err := Up(t.Context(), l, os.Args[0], t.Logf); err != nil {
		t.Errorf("up after the maker was killed: %v", err)
	}
	if _, err := Down(name, t.Logf); err != nil {
		t.Error(err)
	}
	expectTraces(t, before)
}
