package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gswitch/config"
)

// ErrInUse reports that another daemon listens on the socket.
var ErrInUse = errors.New("another daemon listens there")

func inUse(pid int) error {
	return fmt.Errorf("%w%s; this one needs another name (--name with --port, the first switch's name in a file) or another --socket", ErrInUse, process(pid))
}

// Listen opens the Unix socket and, if configured, the TCP address of a resolved
// document. It is called before New, so that a second daemon fails before it touches an
// interface.
func Listen(c config.Control) ([]net.Listener, error) {
	l, err := listenUnix(c.Socket, c.Group)
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w; run it as root, or choose another place with --socket", err)
		}
		return nil, fmt.Errorf("control socket %s: %w", c.Socket, err)
	}
	if c.Listen == "" {
		return []net.Listener{l}, nil
	}
	t, err := listenTCP(c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control address: %w", err), l.Close())
	}
	return []net.Listener{l, t}, nil
}

// listenUnix listens at path. It removes the socket of a process that was killed, but not
// one that has a listener. If a group is named, its members may use the socket.
func listenUnix(path, group string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if errors.Is(err, ErrInUse) {
		return nil, inUse(listener(path))
	}
	if err != nil {
		return nil, err
	}
	if conn, err := net.Dial("unix", path); err == nil {
		pid := peer(conn)
		return nil, errors.Join(inUse(pid), conn.Close(), lock.Close())
	}
	if fi, err := os.Lstat(path); err == nil {
		if fi.Mode()&os.ModeSocket == 0 {
			lock.Close()
			return nil, fmt.Errorf("%s is there and is not a socket", path)
		}
		if err := os.Remove(path); err != nil {
			lock.Close()
			return nil, err
		}
	}
	l, err := ListenPrivate(path)
	if err != nil {
		lock.Close()
		return nil, err
	}
	if err := errors.Join(giveTo(path, group), os.Chmod(path, 0o660)); err != nil {
		return nil, errors.Join(err, l.Close(), lock.Close())
	}
	return &lockedListener{l, lock}, nil
}

// ListenPrivate listens on a Unix socket with mode 0600 from the start, whatever the
// umask: a connection opened before a later change of mode would stay open.
func ListenPrivate(path string) (*net.UnixListener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }) // bind(2) creates the file with it
		return errors.Join(failed, err)
	}}
	l, err := c.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// giveTo sets the group of a file.
func giveTo(path, group string) error {
	if group == "" {
		return nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return fmt.Errorf("there is no group %q (control.group): make it with groupadd --system %s", group, group)
	}
	id, err := strconv.Atoi(g.Gid)
	if err != nil {
		return err
	}
	return os.Chown(path, -1, id)
}

// lockFile makes the check for a socket and its replacement one atomic step. The lock
// ends with the process, however it ends. A symbolic link is not followed: otherwise
// anyone who may write to the directory could make root create files.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, ErrInUse
			}
			return nil, err
		}
		// The previous holder may have removed the file in the meantime: this lock would
		// then exclude nobody.
		mine, err1 := f.Stat()
		there, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

type lockedListener struct {
	net.Listener
	lock *os.File
}

// Close removes the socket, then the lock.
func (l *lockedListener) Close() error {
	return errors.Join(l.Listener.Close(), os.Remove(l.lock.Name()), l.lock.Close())
}
