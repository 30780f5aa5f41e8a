package control

import (
	"net"
	"os"
	"sync"
)

// notify is the notification socket of systemd, if it started this process.
var notify = sync.OnceValue(func() net.Conn {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		return nil // systemd will time out
	}
	return conn
})

// OpenNotify connects to systemd in advance: a process that has dropped Unix sockets
// cannot do so later.
func OpenNotify() { notify() }

// Notify sends the state of a daemon to systemd (sd_notify(3)), if it started us.
func Notify(state string) {
	if conn := notify(); conn != nil {
		_, _ = conn.Write([]byte(state))
	}
}
