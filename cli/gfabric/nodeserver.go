package gfabric

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"gswitch/control"
	"gswitch/fabric/lab"
)

// nodeServer steps a node for the processes that connect to it, one run after the other,
// each in a process of its own.
type nodeServer struct {
	name       string
	socket     string
	interfaces []string
	dir        string
	wait       time.Duration
}

func (v *nodeServer) serve(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := v.setUp(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // it was ended, as it is meant to be
		}
		return err
	}
	l, err := v.listen()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	say("node %s takes runs at %s", v.name, v.socket)
	for {
		conn, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil // it was ended, as it is meant to be
		}
		if err != nil {
			return err
		}
		if err := v.step(ctx, program, conn); err != nil {
			say("node %s: the run failed: %v", v.name, err)
		}
	}
}

// setUp prepares the interfaces.
func (v *nodeServer) setUp(ctx context.Context) error {
	patience, done := context.WithTimeout(ctx, v.wait)
	defer done()
	for _, name := range v.interfaces {
		if err := lab.Dress(patience, name); err != nil {
			return fmt.Errorf("node %s: %w; links come after the container: start it anew once they are there, or wait longer (--wait)", v.name, err)
		}
	}
	return nil
}

// listen makes the socket, for the user of this process alone: who reaches it has
// the node do what a scenario says.
func (v *nodeServer) listen() (*net.UnixListener, error) {
	if c, err := net.Dial("unix", v.socket); err == nil {
		c.Close()
		return nil, fmt.Errorf("%s: another process takes runs there", v.socket)
	}
	if err := os.Remove(v.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // what a killed one left
	}
	return control.ListenPrivate(v.socket)
}

// step lets a process do the run of a connection, and returns when that ended.
func (v *nodeServer) step(ctx context.Context, program string, conn *net.UnixConn) error {
	socket, err := conn.File()
	conn.Close()
	if err != nil {
		return err
	}
	cmd := nodeProcess(program, v.name, socket)
	cmd.Dir, cmd.Stdout, cmd.Stderr = v.dir, os.Stderr, os.Stderr
	err = cmd.Start()
	socket.Close()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })()
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
