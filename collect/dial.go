package collect

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go"

	"gswitch/natsserver"
)

// laneRoom is the space for the state of lanes, in addition to the streams.
const laneRoom = 64 << 20

// NewServer starts a NATS server within this process. Its streams are in a directory and
// take at most limit bytes. With always, every message is on disk before it is
// acknowledged.
func NewServer(dir, listen string, limit int64, always bool, log *slog.Logger) (*natsserver.Server, error) {
	return natsserver.New(natsserver.Options{Program: "gcollect", Dir: dir, Listen: listen, Limit: limit + laneRoom, Always: always, Log: log})
}

// Dial connects to a cluster or, if url is empty, to the embedded server of the gcollect
// whose streams are in dir.
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
