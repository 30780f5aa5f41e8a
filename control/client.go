package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"gswitch/control/api"
)

// SocketDir is the default directory of the daemons' sockets.
const SocketDir = "/run/gswitch"

// FabricSockets is the pattern of the sockets of gfabric's switches.
const FabricSockets = "/run/gfabric/*/*.sock"

// FindSocket returns the socket of the only running daemon that has its socket in dir.
// Daemons whose sockets match the pattern elsewhere are not chosen, but the error lists
// them if there is no other.
func FindSocket(dir, elsewhere string) (string, error) {
	return findSocket("gswitch", dir, elsewhere)
}

// FindHost returns the socket of the only running ghost that has its socket in dir.
func FindHost(dir string) (string, error) { return findSocket("ghost", dir, "") }

func findSocket(program, dir, elsewhere string) (string, error) {
	live, err := liveSockets(filepath.Join(dir, "*.sock"))
	if err != nil {
		return "", err
	}
	switch len(live) {
	case 0:
		if others, err := liveSockets(elsewhere); err == nil && len(others) > 0 {
			return "", fmt.Errorf("no daemon runs under %s, but there is a fabric: choose a daemon of it with\n  --socket %s", dir, strings.Join(others, "\n  --socket "))
		}
		return "", fmt.Errorf("no daemon runs under %s; start one with %s run, or name its socket with --socket", dir, program)
	case 1:
		return live[0], nil
	}
	names := make([]string, len(live))
	for i, p := range live {
		names[i] = strings.TrimSuffix(filepath.Base(p), ".sock")
	}
	return "", fmt.Errorf("several daemons run; choose one with --name: %s", strings.Join(names, ", "))
}

// SocketNamed returns the socket in dir of the daemon with that name: the name of the
// socket file, or of one of its switches, since the first switch, after which the file is
// named, may have been renamed.
func SocketNamed(dir, name string) string {
	path := filepath.Join(dir, name+".sock")
	live, err := liveSockets(filepath.Join(dir, "*.sock"))
	if err != nil || slices.Contains(live, path) {
		return path
	}
	for _, p := range live {
		v, err := Dial(p).GetVersion(context.Background(), &api.GetVersionRequest{})
		if err == nil && slices.Contains(v.Switches, name) {
			return p
		}
	}
	return path
}

// HostNamed returns the socket in dir of the ghost with that name: the name of the socket
// file, or of one of its hosts.
func HostNamed(ctx context.Context, dir, name string) string {
	path := filepath.Join(dir, name+".sock")
	live, err := liveSockets(filepath.Join(dir, "*.sock"))
	if err != nil || slices.Contains(live, path) {
		return path
	}
	for _, p := range live {
		if HasHost(ctx, p, name) {
			return p
		}
	}
	return path
}

// HasHost reports whether the ghost at an address has a host with that name.
func HasHost(ctx context.Context, address, name string) bool {
	m, err := DialHost(address).ListHosts(ctx, &api.ListHostsRequest{Host: name})
	return err == nil && len(m.Hosts) == 1
}

// liveSockets returns the sockets that match a pattern and have a listener.
func liveSockets(pattern string) (live []string, err error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		c, err := net.Dial("unix", p)
		switch {
		case err == nil:
			live = append(live, p)
			c.Close()
		case errors.Is(err, fs.ErrPermission):
			return nil, notAllowed(p)
		}
	}
	return live, nil
}

// notAllowed returns an error that says who may use a socket.
func notAllowed(path string) error {
	group := "its group"
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err == nil {
		if g, err := user.LookupGroupId(fmt.Sprint(st.Gid)); err == nil {
			group = "group " + g.Name
		}
	}
	return fmt.Errorf("%s: permission denied; run this as root (sudo) or as a member of %s", path, group)
}

// patience is how long a daemon may take to answer, and slow the same for calls that may
// take long.
const (
	patience = 5 * time.Second
	slow     = 2 * time.Minute
)

// deadline ends calls that are not answered in time.
func deadline(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		limit := patience
		switch r.Spec().Procedure {
		case api.HostApplyProcedure, api.ControlApplyProcedure, api.ControlEditProcedure, api.ControlGetConfigProcedure, api.ControlListFDBProcedure, api.ControlListRoutesProcedure:
			limit = slow
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return next(ctx, r)
	}
}

// listener returns the process that listens on a Unix socket, or 0. The process need not
// answer for that.
func listener(address string) int {
	c, err := net.Dial("unix", address)
	if err != nil {
		return 0
	}
	defer c.Close()
	return peer(c)
}

// peer returns the process at the other end of a connection (SO_PEERCRED,
// unix(7)), or 0.
func peer(c net.Conn) (pid int) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

func process(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

// Explain turns the error of a call into a message for a person: a ConfigError if the
// request itself is wrong.
func Explain(address string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("no daemon listens at %s; gfabric status lists the daemons of the fabrics that are up, with their sockets", address)
	case errors.Is(err, os.ErrPermission):
		return notAllowed(address)
	case connect.CodeOf(err) == connect.CodeDeadlineExceeded:
		return fmt.Errorf("the daemon at %s%s does not answer", address, process(listener(address)))
	}
	var ce *connect.Error
	switch {
	case !errors.As(err, &ce):
		return err
	case ce.Code() == connect.CodeInvalidArgument:
		return ConfigError{errors.New(ce.Message())}
	case connect.IsWireError(err):
		return errors.New(ce.Message())
	case ce.Code() == connect.CodeCanceled:
		return errors.New("interrupted")
	case ce.Code() == connect.CodeUnimplemented:
		// The server has no such service, and says so only by HTTP.
		return fmt.Errorf("what listens at %s does not have what was asked for: a switch (gswitch), a host (ghost) and a host that keeps its kernel (ghost --transparent) have views of their own", address)
	}
	// Not an answer of the daemon: the connection broke.
	return fmt.Errorf("the daemon at %s ended before it had answered (%s)", address, ce.Message())
}
