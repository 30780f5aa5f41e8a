package gfabric

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/fabric/lab"
	runner "gswitch/fabric/run"
)

// nodeSocket is the descriptor of the socket that a process of a run inherits.
const nodeSocket = 3

// nodeCommand is what gfabric run --processes starts, and what containers run.
func nodeCommand() *cobra.Command {
	var v nodeServer
	c := &cobra.Command{
		Use:    "node NAME",
		Hidden: true,
		Short:  "Step nodes of a run on real frames, for another gfabric",
		Long: "node is a process of gfabric run --processes, which starts it with a socket as\n" +
			"descriptor 3. It ends with the gfabric that started it.\n\n" +
			"With --listen it waits for runs of gfabric collect, one after the other, until it is\n" +
			"ended: containers that gfabric export wrote do this.",
		Example: "  gfabric node h1 3<>socket\n" +
			"  gfabric node h1 --listen /run/gfabric/h1.sock --interface eth1",
		Args: one("the process, as the gfabric that starts it does"),
		RunE: func(c *cobra.Command, args []string) error {
			if v.socket != "" {
				v.name = args[0]
				return v.serve(c.Context())
			}
			conn, err := net.FileConn(os.NewFile(nodeSocket, "socket"))
			if err != nil {
				return usagef("node is started by gfabric run --processes hosts or each, with a socket as descriptor 3, or takes runs at a socket (--listen): %w", err)
			}
			defer lab.GoFirst()()
			return runner.Node(conn, version, func() { os.Exit(exitFailed) })
		},
	}
	c.Flags().StringVar(&v.socket, "listen", "", "Unix socket at which runs are taken, which it makes")
	c.Flags().StringArrayVar(&v.interfaces, "interface", nil, "with --listen: an interface of the node; it is set up for AF_XDP. May be repeated")
	c.Flags().StringVar(&v.dir, "dir", "", "with --listen: directory in which scenarios lie that runs are of")
	c.Flags().DurationVar(&v.wait, "wait", time.Minute, "with --listen: how long to wait for interfaces that are not there")
	return c
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
	var said tail
	cmd := nodeProcess(program, name, theirs)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), env)
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

// nodeProcess is a process that steps the node for who has the other end of the
// socket.
func nodeProcess(program, name string, socket *os.File) *exec.Cmd {
	cmd := exec.Command(program, "node", name)
	cmd.ExtraFiles = []*os.File{socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
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
