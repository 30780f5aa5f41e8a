package control

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"gswitch/control/api"
)

// Credentials are files with which a client authenticates at a TCP address: a token, or a
// certificate with its key. CA holds the certificates that must have signed the daemon's;
// empty means those of the system.
type Credentials struct{ Token, CA, Cert, Key string }

// Dial returns a client of the daemon at address: the path of a socket, or host:port with
// the credentials needed there. Unary calls time out; streams do not.
func Dial(address string, show ...Credentials) api.ControlClient {
	client, base := dialer(address, show)
	return api.NewControlClient(client, base, clientOptions...)
}

// DialHost is Dial for a ghost.
func DialHost(address string, show ...Credentials) api.HostClient {
	client, base := dialer(address, show)
	return api.NewHostClient(client, base, clientOptions...)
}

// DialTransparent returns a client of a daemon in transparent mode, as DialHost does.
func DialTransparent(address string, show ...Credentials) api.TransparentClient {
	client, base := dialer(address, show)
	return api.NewTransparentClient(client, base, clientOptions...)
}

// On the same machine compression only costs time: for a capture, a whole processor.
var clientOptions = []connect.ClientOption{connect.WithAcceptCompression("gzip", nil, nil), connect.WithInterceptors(connect.UnaryInterceptorFunc(deadline))}

// dialer returns the HTTP client of a daemon, and its URL.
func dialer(address string, show []Credentials) (*http.Client, string) {
	protocols := new(http.Protocols)
	t := &http.Transport{Protocols: protocols}
	protocols.SetUnencryptedHTTP2(true)
	if strings.Contains(address, "/") || !strings.Contains(address, ":") {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", address)
		}
		return &http.Client{Transport: t}, "http://localhost"
	}
	var c Credentials
	if len(show) > 0 {
		c = show[0]
	}
	bearer, err := c.bearer()
	scheme := "http"
	if c.CA != "" || c.Cert != "" {
		protocols.SetUnencryptedHTTP2(false)
		protocols.SetHTTP2(true)
		scheme = "https"
		if err == nil {
			t.TLSClientConfig, err = c.tls()
		}
	}
	return &http.Client{Transport: &shown{t, bearer, err}}, scheme + "://" + address
}

// bearer returns the value of the Authorization header with the token, or "".
func (c *Credentials) bearer() (string, error) {
	if c.Token == "" {
		return "", nil
	}
	token, err := ReadToken(c.Token)
	return "Bearer " + token, err
}

func (c *Credentials) tls() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS13}
	var err error
	if c.CA != "" {
		if conf.RootCAs, err = readCertificates(c.CA); err != nil {
			return nil, err
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// shown adds a token to requests. If its file could not be read, every request fails.
type shown struct {
	*http.Transport
	bearer string
	err    error
}

func (s *shown) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.bearer != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", s.bearer)
	}
	return s.Transport.RoundTrip(r)
}
