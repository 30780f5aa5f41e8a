package control

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"gswitch/config"
	"gswitch/wholefile"
)

// tcpListener is the TCP address of a daemon, with its access rules. It uses TLS if
// secure is not nil.
type tcpListener struct {
	net.Listener
	guard  *guard
	secure *tls.Config
}

// listenTCP opens the TCP address of a document.
func listenTCP(c config.Control) (*tcpListener, error) {
	g, secure, err := newGuard(c)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, err
	}
	return &tcpListener{l, g, secure}, nil
}

// ListenMetrics opens a TCP address for /metrics and /healthz only. It accepts requests
// whose host is an IP address, this machine, or one of names, which a flag sets.
func ListenMetrics(address string, names []string, flag string) (net.Listener, error) {
	l, err := listenTCP(config.Control{Listen: address, Names: names})
	if err != nil {
		return nil, err
	}
	l.guard.hint, l.guard.nothing = flag, errors.New("there is nothing at this address but /metrics and /healthz")
	return l, nil
}

// guard protects the API from unauthenticated requests to the TCP address.
type guard struct {
	names []string // accepted names of the daemon
	token [sha256.Size]byte
	open  struct{ token, certificate bool } // ways to authenticate

	hint    string // where its names are configured
	nothing error  // error if there is no way to authenticate
}

func newGuard(c config.Control) (*guard, *tls.Config, error) {
	g := &guard{names: []string{"localhost"}, hint: "control.names",
		nothing: errors.New("there is no API at this address, only /metrics and /healthz: use the daemon's socket, or open the API with control.api")}
	if name, err := os.Hostname(); err == nil {
		g.names = append(g.names, strings.ToLower(name))
	}
	for _, n := range c.Names {
		g.names = append(g.names, strings.ToLower(n))
	}
	a := c.API
	if a == nil {
		return g, nil, nil
	}
	if a.Token != "" {
		token, err := ReadToken(a.Token)
		if err != nil {
			return nil, nil, fmt.Errorf("control.api.token: %w", err)
		}
		g.token, g.open.token = sha256.Sum256([]byte(token)), true
	}
	if a.Cert == "" {
		return g, nil, nil
	}
	pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("control.api.cert: %w", err)
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}
	if a.CA != "" {
		if secure.ClientCAs, err = readCertificates(a.CA); err != nil {
			return nil, nil, fmt.Errorf("control.api.ca: %w", err)
		}
		secure.ClientAuth, g.open.certificate = tls.VerifyClientCertIfGiven, true
	}
	return g, secure, nil
}

// ReadToken reads a token from a file that only its owner and group can read.
func ReadToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	if fi.Mode().Perm()&0o007 != 0 {
		return "", fmt.Errorf("%s: all users may read or write it; chmod 0640 %s", path, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil {
		return "", err
	}
	token := string(bytes.TrimSpace(b))
	if len(token) < 32 || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s: a token is one word of at least 32 letters; make one with: (umask 077; openssl rand -hex 32 > %s)", path, path)
	}
	return token, nil
}

func readCertificates(path string) (*x509.CertPool, error) {
	pem, err := wholefile.Read(path, 1<<20)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it (PEM)", path)
	}
	return pool, nil
}

// public lists what may be read without a token, by an accepted name.
var public = []string{"/", "/metrics", "/healthz", "/readyz"}

// protect passes the requests that the guard allows.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.accepts(r.Host) {
			http.Error(w, fmt.Sprintf("%q is no name of this daemon: ask by address, or add the name to %s", r.Host, g.hint), http.StatusMisdirectedRequest)
			return
		}
		if !slices.Contains(public, r.URL.Path) {
			if err := g.admit(r); err != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, err.Error(), http.StatusUnauthorized)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// accepts reports whether a request names this daemon. A web page whose own name resolves
// to this address (DNS rebinding) sends that name; an IP address cannot be made to
// resolve elsewhere.
func (g *guard) accepts(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return slices.Contains(g.names, strings.ToLower(host))
}

// admit returns why a request may not use the API.
func (g *guard) admit(r *http.Request) error {
	if g.open.certificate && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return nil
	}
	if g.open.token {
		said, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(said))
		if ok && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1 {
			return nil
		}
		return errors.New("the API wants the token here: --token FILE, or the header Authorization: Bearer")
	}
	if g.open.certificate {
		return errors.New("the API wants a client's certificate here")
	}
	return g.nothing
}
