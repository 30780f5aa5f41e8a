package control

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"gswitch/config"
	"gswitch/control/api"
)

// listening starts a daemon with a control section and returns it with its TCP
// address.
func listening(t *testing.T, control config.Control, wait limits) (*Daemon, string) {
	t.Helper()
	control.Socket, control.Listen = filepath.Join(t.TempDir(), "s.sock"), "127.0.0.1:0"
	c := parse(t, wires)
	c.Control = control
	d, err := New(t.Context(), c, Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	listeners, err := Listen(control)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- serve(ctx, d.Handler(), listeners, &d.clients, wait) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	return d, listeners[1].Addr().String()
}

// ask sends a request under a name and returns the status and the answer.
func ask(t *testing.T, method, address, host, path, body string, header http.Header) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	r.Host = host
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

const applyPath = "/gswitch.v1.Control/Apply"

// attack is a document that has the daemon write a file.
func attack(file string) string {
	return strings.Replace(wires, "{name: p2, wire: b, acl: edge}", "{name: p2, wire: b, acl: edge}\n      - {name: p3, pcap: {write: "+file+"}}", 1)
}

func jsonRequest(document string) string { return fmt.Sprintf(`{"yaml": %q}`, document) }

var asJSON = http.Header{"Content-Type": {"application/json"}}

// A client that reaches the TCP address reads metrics, and does nothing else: not by any
// method, nor by a name that a foreign page directs here.
func TestTCPServesNoAPI(t *testing.T) {
	d, address := listening(t, config.Control{Names: []string{"switch.example"}}, patient)
	file := filepath.Join(t.TempDir(), "root")
	before := string(d.Config().YAML())
	if code, body := ask(t, "POST", address, address, applyPath, jsonRequest(attack(file)), asJSON); code != http.StatusUnauthorized || !strings.Contains(body, "there is no API at this address") {
		t.Errorf("Apply over TCP: %d %s", code, body)
	}
	for _, path := range []string{"/gswitch.v1.Control/ListPorts", "/gswitch.v1.Control/Edit", "//gswitch.v1.Control/Apply", "/metrics/../gswitch.v1.Control/Apply", "/nothing"} {
		for _, method := range []string{"GET", "POST", "PUT", "OPTIONS"} {
			if code, body := ask(t, method, address, address, path, "{}", http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer "}}); code != http.StatusUnauthorized {
				t.Errorf("%s %s over TCP: %d %s", method, path, code, body)
			}
		}
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
	if now := string(d.Config().YAML()); now != before {
		t.Error("the configuration was changed")
	}
	for host, want := range map[string]int{address: 200, "localhost:1": 200, "[::1]:9": 200, "SWITCH.example": 200, "rebound.example": 421, "rebound.example:9479": 421, "127.0.0.1.rebound.example": 421} {
		for path, has := range map[string]string{"/metrics": "gswitch_port_up", "/healthz": "ok", "/readyz": "ok", "/": "GET /metrics"} {
			if code, body := ask(t, "GET", address, host, path, "", nil); code != want || code == 200 && !strings.Contains(body, has) {
				t.Errorf("%s of %s: %d, want %d\n%.200s", path, host, code, want, body)
			}
		}
	}
}

// With a token the API is there for those who have it.
func TestToken(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := strings.Repeat("k", 32)
	good := file("token", token+"\n", 0o640)
	_, address := listening(t, config.Control{API: &config.Remote{Token: good}}, patient)
	wrong := file("wrong", strings.Repeat("j", 32), 0o600)
	for name, c := range map[string]struct {
		show Credentials
		want connect.Code
	}{"none": {Credentials{}, connect.CodeUnauthenticated}, "another": {Credentials{Token: wrong}, connect.CodeUnauthenticated}, "the token": {Credentials{Token: good}, 0}} {
		_, err := Dial(address, c.show).GetVersion(context.Background(), &api.GetVersionRequest{})
		if (err != nil) != (c.want != 0) || err != nil && connect.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A client that has it still does not write files.
	root := filepath.Join(dir, "root")
	_, err := Dial(address, Credentials{Token: good}).Apply(context.Background(), &api.ApplyRequest{Yaml: attack(root)})
	if err == nil || !strings.Contains(err.Error(), root+": the API names no files of its own") {
		t.Errorf("a file by the API: %v", err)
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
	for path, want := range map[string]string{
		file("short", "secret", 0o600):                  "at least 32 letters",
		file("two words", token+" "+token, 0o600):       "one word",
		file("everybody's", token, 0o644):               "all users may read",
		filepath.Join(dir, "nowhere"):                   "no such file",
		file("large", strings.Repeat(" k", 1e6), 0o600): "one word",
	} {
		if _, err := ReadToken(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// certificate writes a certificate that parent signs, itself if there is none.
func certificate(t *testing.T, dir, name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: parent == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for suffix, b := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}

// Clients with a certificate of the right authority may, others may not.
func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	ca, key := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "server", ca, key)
	certificate(t, dir, "client", ca, key)
	other, otherKey := certificate(t, dir, "other", nil, nil)
	certificate(t, dir, "stranger", other, otherKey)
	at := func(name string) string { return filepath.Join(dir, name) }
	_, address := listening(t, config.Control{API: &config.Remote{Cert: at("server.pem"), Key: at("server.key"), CA: at("ca.pem")}}, patient)
	for name, c := range map[string]struct {
		show Credentials
		want bool
	}{
		"client":          {Credentials{CA: at("ca.pem"), Cert: at("client.pem"), Key: at("client.key")}, true},
		"no certificate":  {Credentials{CA: at("ca.pem")}, false},
		"stranger":        {Credentials{CA: at("ca.pem"), Cert: at("stranger.pem"), Key: at("stranger.key")}, false},
		"in clear":        {Credentials{}, false},
		"another's trust": {Credentials{CA: at("other.pem"), Cert: at("client.pem"), Key: at("client.key")}, false},
	} {
		if _, err := Dial(address, c.show).GetVersion(context.Background(), &api.GetVersionRequest{}); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Connections beyond the bound are closed at once, and those on which nothing
// comes, or not all of a request, when their time is over.
func TestConnectionsAreBounded(t *testing.T) {
	short := limits{header: 200 * time.Millisecond, body: 200 * time.Millisecond, idle: 200 * time.Millisecond}
	_, address := listening(t, config.Control{}, short)
	dial := func(say string) net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, say); err != nil {
			t.Fatal(err)
		}
		return c
	}
	// What each says, and then no more.
	for _, say := range []string{
		"",
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"POST /gswitch.v1.Control/Apply HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n{",
	} {
		if _, err := io.Copy(io.Discard, dial(say)); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q is not closed: %v", say, err)
		}
	}
	_, address = listening(t, config.Control{}, patient)
	var held []net.Conn
	for range maxConnections {
		c := dial("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || a.StatusCode != 200 {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	for range 3 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_, said := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") // it may be closed already
		if n, err := io.Copy(io.Discard, c); n != 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a connection beyond %d is not closed: %d bytes, %v, %v", maxConnections, n, said, err)
		}
	}
	held[0].Close()
	for { // as soon as that is known
		c := dial("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if b, err := io.ReadAll(c); err == nil && strings.HasSuffix(string(b), "ok\n") {
			break
		}
	}
}

// A request over the socket must be whole in time, too; a stream goes on.
func TestSlowRequests(t *testing.T) {
	short := limits{header: time.Second, body: 100 * time.Millisecond, idle: time.Second}
	d, _ := listening(t, config.Control{}, short)
	path := d.Config().Control.Socket
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST "+applyPath+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || a.StatusCode == 200 {
		t.Errorf("half a request is answered by %v, %v", a, err)
	}
	for _, http1 := range []bool{false, true} {
		client := Dial(path)
		if http1 {
			transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			}}
			client = api.NewControlClient(&http.Client{Transport: transport}, "http://localhost")
		}
		stream, err := client.Watch(t.Context(), &api.WatchRequest{IntervalMs: 50})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 { // three times as long as a request may take
			if !stream.Receive() {
				t.Fatalf("HTTP/1 %v: the stream ended after %d reports: %v", http1, i, stream.Err())
			}
		}
		stream.Close()
	}
}

// A client that requests metrics and takes none of them does not keep others from theirs.
func TestMetricsThatNobodyTakes(t *testing.T) {
	ended := make(chan error, 1)
	s := httptest.NewServer(taken(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for b := make([]byte, 1<<20); err == nil; { // more than all buffers on the way hold
			_, err = w.Write(b)
		}
		ended <- err
	}), 50*time.Millisecond))
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the answer ended with %v", err)
	}
}

// The control socket is for the daemon's user and its group.
func TestSocketIsForItsGroup(t *testing.T) {
	d, _ := listening(t, config.Control{}, patient)
	if info, err := os.Stat(d.Config().Control.Socket); err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// It is inaccessible to all others before it is given to the group, whatever the umask, and its lock
// is not made through a link of a user who may write to the directory.
func TestSocketIsPrivateAtFirst(t *testing.T) {
	dir := t.TempDir()
	before := syscall.Umask(0)
	l, err := ListenPrivate(filepath.Join(dir, "s"))
	syscall.Umask(before)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(filepath.Join(dir, "s")); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	target := filepath.Join(dir, "of-root")
	if err := os.Symlink(target, filepath.Join(dir, "t.lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(filepath.Join(dir, "t"), ""); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link in place of the lock: %v", err)
	}
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made through a link: %v", err)
	}
}

// A file that the daemon's own document reads is not written for the API.
func TestFilesAreForOneUse(t *testing.T) {
	own := parse(t, strings.Replace(wires, "{name: p2, wire: b, acl: edge}", "{name: p2, wire: b, acl: edge}\n      - {name: p3, pcap: {read: /in.pcap, write: /out.pcap}}", 1)).Files()
	for _, c := range []struct {
		files map[string]config.Use
		ok    bool
	}{
		{own, true},
		{map[string]config.Use{"/in.pcap": config.Reads}, true},
		{map[string]config.Use{"/in.pcap": config.Writes}, false},
		{map[string]config.Use{"/out.pcap": config.Reads}, false},
		{map[string]config.Use{"/else.pcap": config.Reads}, false},
	} {
		if err := Confined(c.files, own); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.files, err)
		}
	}
}

// A document of thirty megabytes that asks for millions of elements is refused, by the
// API, too, at the cost of a few times its own size.
func TestLargeDryRun(t *testing.T) {
	d, _ := listening(t, config.Control{}, patient)
	c := Dial(d.Config().Control.Socket)
	const all = 30 << 20
	for head, element := range map[string]string{"switches:\n  - {name: s1, ports: [": "{},", "routes: [": "x,", "switches: ": "["} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.Apply(t.Context(), &api.ApplyRequest{Yaml: head + strings.Repeat(element, (all-len(head))/len(element)), DryRun: true})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; connect.CodeOf(err) != connect.CodeInvalidArgument || used > 20*all {
			t.Errorf("%q...: %d MiB were used, and it says %.200v", head, used>>20, err)
		}
	}
}

// A request that is small as it comes and large as it is read, since it is compressed, is
// refused before anything of it is read (sixty megabytes of one letter are sixty kilobytes).
func TestCompressedRequests(t *testing.T) {
	d, _ := listening(t, config.Control{}, patient)
	socket := d.Config().Control.Socket
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	var small bytes.Buffer
	z := gzip.NewWriter(&small)
	const all = 60 << 20
	_, err := io.Copy(z, io.MultiReader(strings.NewReader(`{"switch":"`), strings.NewReader(strings.Repeat("x", all)), strings.NewReader(`"}`)))
	if err := errors.Join(err, z.Close()); err != nil || small.Len() > maxRequest/4 {
		t.Fatal(small.Len(), err)
	}
	for _, kind := range []string{"application/json", "application/grpc+json"} {
		body := small.Bytes()
		if kind != "application/json" { // each message has a head: a flag, and its length
			body = append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(body))), body...)
		}
		r, err := http.NewRequest("POST", "http://localhost/gswitch.v1.Control/ListPorts", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {kind}, "Content-Encoding": {"gzip"}, "Grpc-Encoding": {"gzip"}, "Connect-Protocol-Version": {"1"}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(a.Body)
		a.Body.Close()
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > all/4 {
			t.Errorf("%s: %d MiB were used for a request of %d KiB: %d %.200s, %v", kind, used>>20, small.Len()>>10, a.StatusCode, said, err)
		}
		if a.StatusCode == 200 && a.Header.Get("Grpc-Status") == "" && a.Trailer.Get("Grpc-Status") == "" {
			t.Errorf("%s: it is answered: %.200s", kind, said)
		}
	}
}

// A request is no larger than what it may mean, and of documents, which may be
// large, one is read at a time.
func TestRequestsAreBounded(t *testing.T) {
	d, _ := listening(t, config.Control{}, patient)
	c := Dial(d.Config().Control.Socket)
	large := strings.Repeat("x", maxRequest)
	if _, err := c.ListPorts(t.Context(), &api.ListRequest{Switch: large}); connect.CodeOf(err) != connect.CodeResourceExhausted && connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a name of %d letters: %.200v", len(large), err)
	}
	if _, err := c.Apply(t.Context(), &api.ApplyRequest{Yaml: wires + "# " + large, DryRun: true}); err == nil || !strings.Contains(err.Error(), "restart it") {
		t.Errorf("a document of %d letters is not read: %.200v", len(large), err)
	}
	if _, err := c.Apply(t.Context(), &api.ApplyRequest{Yaml: strings.Repeat("#", maxDocument), DryRun: true}); connect.CodeOf(err) != connect.CodeResourceExhausted && connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a document of %d letters: %.200v", maxDocument, err)
	}
	var now, most atomic.Int32
	h := new(Clients).bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		now.Add(-1)
	}), time.Minute)
	srv := httptest.NewServer(h)
	defer srv.Close()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			r, err := http.Post(srv.URL+applyPath, "application/json", strings.NewReader(strings.Repeat("x", 1<<20)))
			if err != nil {
				t.Error(err)
				return
			}
			r.Body.Close()
		})
	}
	if all.Wait(); most.Load() != 1 {
		t.Errorf("%d documents are read at once", most.Load())
	}
}
