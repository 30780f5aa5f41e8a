package gfabric

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/fabric/lab"
	runner "gswitch/fabric/run"
)

// nodeSocket is the descriptor of the socket that a process of a run inherits.
const nodeSocket = 3

// nodeCommand is what gfabric run --processes starts.
func nodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "node NAME",
		Hidden: true,
		Short:  "Step nodes of a run on real frames, for the gfabric that started it",
		Long: "node is a process of gfabric run --processes, which starts it with a socket as\n" +
			"descriptor 3. It ends with the gfabric that started it.",
		Example: "  gfabric node h1 3<>socket",
		Args:    one("the process, as the gfabric that starts it does"),
		RunE: func(*cobra.Command, []string) error {
			conn, err := net.FileConn(os.NewFile(nodeSocket, "socket"))
			if err != nil {
				return usagef("node is started by gfabric run --processes hosts or each, with a socket as descriptor 3: %w", err)
			}
			defer lab.GoFirst()()
			return runner.Node(conn, version, func() { os.Exit(exitFailed) })
		},
	}
}

// startNode starts a process of a run. It is in a session of its own, since
// Ctrl-C is for the one that started it; when that ends, however it does, the
// socket closes and the process ends.
func startNode(name, env string) (*runner.Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "node", name)
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	return &runner.Process{Conn: conn, PID: cmd.Process.Pid, Kill: func() { cmd.Process.Kill() }, Wait: func() error {
		err := cmd.Wait()
		if text := said.String(); err != nil && text != "" {
			err = fmt.Errorf("%w, and said:\n%s", err, text)
		}
		return err
	}}, nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is how much of it: more than what a panic says before its stacks.
const maxTail = 4096

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
