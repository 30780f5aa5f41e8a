package control

import (
	"net"
	"os"
)

// Notify tells systemd of a daemon's state (sd_notify(3)), if it started us.
func Notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		return // systemd will find the time out
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}
