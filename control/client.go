package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"github.com/gswitch/gswitch/control/api"
)

// SocketDir is where daemons put their sockets if they are not told.
const SocketDir = "/run/gswitch"

// SocketOf returns the default socket of a daemon whose first switch has that
// name.
func SocketOf(name string) string { return filepath.Join(SocketDir, name+".sock") }

// FindSocket returns the socket of the only daemon that runs.
func FindSocket(dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	if err != nil {
		return "", err
	}
	var live []string
	for _, p := range paths {
		c, err := net.Dial("unix", p)
		switch {
		case err == nil:
			live = append(live, p)
			c.Close()
		case errors.Is(err, fs.ErrPermission):
			return "", fmt.Errorf("%s: permission denied; the socket belongs to root", p)
		}
	}
	switch len(live) {
	case 0:
		return "", fmt.Errorf("no daemon runs under %s; start one with gswitch run, or name its socket with --socket", dir)
	case 1:
		return live[0], nil
	}
	names := make([]string, len(live))
	for i, p := range live {
		names[i] = strings.TrimSuffix(filepath.Base(p), ".sock")
	}
	return "", fmt.Errorf("several daemons run; choose one with --name: %s", strings.Join(names, ", "))
}

// Dial returns a client of the daemon at address: a path of a socket, or
// host:port.
func Dial(address string) api.ControlClient {
	network := "unix"
	if !strings.Contains(address, "/") && strings.Contains(address, ":") {
		network = "tcp"
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{
		Protocols: protocols,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
	// On one machine compression only costs time, a processor's worth of it for
	// a capture.
	return api.NewControlClient(client, "http://gswitch", connect.WithAcceptCompression("gzip", nil, nil))
}

// Explain turns an error of a call into what a person should read.
func Explain(address string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("no daemon listens at %s", address)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%s: permission denied; the socket belongs to root", address)
	}
	var ce *connect.Error
	if errors.As(err, &ce) {
		return errors.New(ce.Message())
	}
	return err
}
