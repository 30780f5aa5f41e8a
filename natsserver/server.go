// Package natsserver runs a NATS server with JetStream within a process, so that
// what works with a cluster works on one machine with nothing to install.
package natsserver

import (
	"crypto/rand"
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

	"gswitch/wholefile"
)

// MaxPayload is how large a message of the server may be.
const MaxPayload = 8 << 20

// MaxConnections is how many clients a server has at most, with those that have not
// shown the token.
const MaxConnections = 4096

// Options say what a server keeps, and for whom.
type Options struct {
	Program string // whose server it is
	Dir     string // of its streams
	Listen  string // host:port; port 0: any
	Limit   int64  // most bytes of all streams
	Always  bool   // every message is on the disk, and not in the kernel's memory only, before it is acknowledged
	Token   string // that clients must have; drawn at random if ""
	Log     *slog.Logger
}

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

// Address is how other programs of this machine reach a server.
type Address struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// addressFile is where a server says its address, beside its streams.
const addressFile = "nats.json"

// Find reads the address of the server whose streams lie in a directory. The
// error is os.ErrNotExist if none runs.
func Find(dir string) (a Address, err error) {
	file := filepath.Join(dir, addressFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// New starts a server.
func New(o Options) (*Server, error) {
	host, p, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("the NATS server is to listen on %q, which is not host:port", o.Listen)
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("the NATS server is to listen on %q, which is not host:port", o.Listen)
	}
	if strings.Contains(o.Token, ":") {
		return nil, errors.New("the token of this NATS server has a colon, and clients take what has one for USER:PASSWORD: leave it out")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	s := &Server{file: filepath.Join(o.Dir, addressFile), failed: make(chan struct{})}
	if s.lock, err = os.OpenFile(filepath.Join(o.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		s.lock.Close()
		return nil, fmt.Errorf("another %s has %s: give this one another --data, or have both use one cluster (--nats)", o.Program, o.Dir)
	}
	a := Address{Token: o.Token}
	if a.Token == "" {
		a.Token = rand.Text()
	}
	so := &server.Options{ServerName: o.Program, Host: host, Port: int(port), Authorization: a.Token, NoSigs: true, MaxPayload: MaxPayload,
		MaxConn: MaxConnections, JetStream: true, StoreDir: o.Dir, JetStreamMaxStore: o.Limit, JetStreamMaxMemory: 16 << 20, SyncAlways: o.Always}
	if so.Port == 0 {
		so.Port = server.RANDOM_PORT
	}
	if s.Server, err = server.NewServer(so); err != nil {
		s.lock.Close()
		return nil, err
	}
	s.SetLoggerV2(natsLog{o.Log, sync.OnceFunc(func() { close(s.failed) })}, false, false, false)
	go s.Start()
	if !s.ReadyForConnections(time.Minute) {
		s.Close()
		return nil, errors.New("the embedded NATS server does not start")
	}
	if !s.JetStreamEnabled() {
		s.Close()
		return nil, fmt.Errorf("the embedded NATS server cannot keep streams in %s", o.Dir)
	}
	a.URL = s.ClientURL()
	text, err := json.Marshal(a)
	if err == nil {
		err = wholefile.WriteBytes(s.file, 0o600, text)
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
	a, err := Find(filepath.Dir(s.file))
	if err != nil {
		return nil, err
	}
	return nats.Connect("", nats.InProcessServer(s), nats.Token(a.Token), nats.MaxReconnects(-1))
}

// natsLog gives the server's messages to a logger: what is ordinary only where
// details are wanted. It is the one way in which a server says that a stream cannot be
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
