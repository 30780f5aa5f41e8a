package control

import (
	"net"
	"os"
	"sync"
)

// notify is the socket of who started this process, if that is systemd.
var notify = sync.OnceValue(func() net.Conn {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		return nil // systemd will find the time out
	}
	return conn
})

// OpenNotify connects to systemd: a process that has dropped Unix sockets cannot do so any more.
func OpenNotify() { notify() }

// Notify sends systemd a daemon's state (sd_notify(3)), if it started us.
func Notify(state string) {
	if conn := notify(); conn != nil {
		_, _ = conn.Write([]byte(state))
	}
}
