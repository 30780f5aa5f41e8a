package collect

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go"

	"gswitch/natsserver"
)

// laneRoom is for what is noted of lanes, beside the streams.
const laneRoom = 64 << 20

// NewServer starts a NATS server within this process whose streams lie in a directory
// and take so many bytes at most. With always every message is on the disk before it
// is acknowledged.
func NewServer(dir, listen string, limit int64, always bool, log *slog.Logger) (*natsserver.Server, error) {
	return natsserver.New(natsserver.Options{Program: "gcollect", Dir: dir, Listen: listen, Limit: limit + laneRoom, Always: always, Log: log})
}

// Dial connects to a cluster or, without its URL, to the embedded server of the
// gcollect whose streams lie in a directory.
func Dial(url string, l natsserver.Login, dir string) (*nats.Conn, error) {
	if url != "" {
		return natsserver.Dial(url, "gcollect", l)
	}
	a, err := natsserver.Find(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no gcollect runs with %s: start one (gcollect run --data %s), or say where the cluster is with --nats", dir, dir)
	}
	if err != nil {
		return nil, err
	}
	return nats.Connect(a.URL, nats.Name("gcollect"), nats.MaxReconnects(-1), nats.Token(a.Token))
}
