package collect

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"
)

// laneRoom is for what is noted of lanes, beside the streams.
const laneRoom = 64 << 20

// maxPayload is how large a message of the embedded server may be.
const maxPayload = 8 << 20

// Server is a NATS server within this process.
type Server struct {
	*server.Server
	lock   *os.File
	file   string
	failed chan struct{}
}

// Failed is closed when a stream could not be written, as to a disk that is full: it
// takes nothing more then until the server begins anew.
func (s *Server) Failed() <-chan struct{} { return s.failed }

// address is how other programs of this machine reach an embedded server.
type address struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// NewServer starts a server whose streams lie in a directory and take so many bytes
// at most. With always every message is on the disk, and not in the kernel's memory
// only, before it is acknowledged.
func NewServer(dir, listen string, limit int64, always bool, log *slog.Logger) (*Server, error) {
	host, p, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("the NATS server is to listen on %q, which is not host:port", listen)
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("the NATS server is to listen on %q, which is not host:port", listen)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Server{file: filepath.Join(dir, "nats.json"), failed: make(chan struct{})}
	if s.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		s.lock.Close()
		return nil, fmt.Errorf("another gcollect has %s: give this one another --data, or have both use one cluster (--nats)", dir)
	}
	var secret [16]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, err
	}
	a := address{Token: hex.EncodeToString(secret[:])}
	o := &server.Options{ServerName: "gcollect", Host: host, Port: int(port), Authorization: a.Token, NoSigs: true, MaxPayload: maxPayload,
		JetStream: true, StoreDir: dir, JetStreamMaxStore: limit + laneRoom, JetStreamMaxMemory: 16 << 20, SyncAlways: always}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if s.Server, err = server.NewServer(o); err != nil {
		s.lock.Close()
		return nil, err
	}
	s.SetLoggerV2(natsLog{log, sync.OnceFunc(func() { close(s.failed) })}, false, false, false)
	go s.Start()
	if !s.ReadyForConnections(time.Minute) {
		s.Close()
		return nil, errors.New("the embedded NATS server does not start")
	}
	if !s.JetStreamEnabled() {
		s.Close()
		return nil, fmt.Errorf("the embedded NATS server cannot keep streams in %s", dir)
	}
	a.URL = s.ClientURL()
	text, err := json.Marshal(a)
	if err == nil {
		err = os.WriteFile(s.file, text, 0o600)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the server.
func (s *Server) Close() {
	s.Shutdown()
	s.WaitForShutdown()
	os.Remove(s.file)
	s.lock.Close()
}

// Connect connects to it without a socket.
func (s *Server) Connect() (*nats.Conn, error) {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return nil, err
	}
	var a address
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, err
	}
	return nats.Connect("", nats.InProcessServer(s), nats.Token(a.Token), nats.MaxReconnects(-1))
}

// Dial connects to a cluster or, without its URL, to the embedded server of the
// gcollect whose streams lie in a directory. creds is a file of credentials, or "".
func Dial(url, creds, dir string) (*nats.Conn, error) {
	o := []nats.Option{nats.Name("gcollect"), nats.MaxReconnects(-1)}
	if creds != "" {
		o = append(o, nats.UserCredentials(creds))
	}
	if url != "" {
		return nats.Connect(url, o...)
	}
	file := filepath.Join(dir, "nats.json")
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no gcollect runs with %s: start one (gcollect run --data %s), or say where the cluster is with --nats", dir, dir)
	}
	if err != nil {
		return nil, err
	}
	var a address
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return nats.Connect(a.URL, append(o, nats.Token(a.Token))...)
}

// natsLog gives the server's messages to a logger: what is ordinary only where
// details are wanted. It is the one way in which a server tells that a stream cannot be
// written any more.
type natsLog struct {
	log    *slog.Logger
	failed func()
}

func (l natsLog) Noticef(f string, v ...any) { l.log.Debug("nats: " + fmt.Sprintf(f, v...)) }
func (l natsLog) Warnf(f string, v ...any)   { l.log.Warn("nats: " + fmt.Sprintf(f, v...)) }
func (l natsLog) Fatalf(f string, v ...any)  { l.log.Error("nats: " + fmt.Sprintf(f, v...)) }
func (l natsLog) Errorf(f string, v ...any) {
	text := fmt.Sprintf(f, v...)
	l.log.Error("nats: " + text)
	if strings.Contains(text, "ritical write error") || strings.Contains(text, "will be DISABLED") {
		l.failed()
	}
}
func (l natsLog) Debugf(string, ...any) {}
func (l natsLog) Tracef(string, ...any) {}
