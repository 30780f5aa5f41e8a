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

// Credentials are files by which a client may use the API at a TCP address: a
// token, or a certificate with its key. CA are the certificates that the
// daemon's must be signed by; those of the system if it is empty.
type Credentials struct{ Token, CA, Cert, Key string }

// Dial returns a client of the daemon at address: a path of a socket, or
// host:port, with the credentials that it wants there. Calls that are not
// answered end; streams wait.
func Dial(address string, show ...Credentials) api.ControlClient {
	client, base := dialer(address, show)
	return api.NewControlClient(client, base, clientOptions...)
}

// DialHost is Dial for a ghost.
func DialHost(address string, show ...Credentials) api.HostClient {
	client, base := dialer(address, show)
	return api.NewHostClient(client, base, clientOptions...)
}

// DialTransparent returns a client of a daemon of bumps, as DialHost does.
func DialTransparent(address string, show ...Credentials) api.TransparentClient {
	client, base := dialer(address, show)
	return api.NewTransparentClient(client, base, clientOptions...)
}

// On one machine compression only costs time, a processor's worth of it for a
// capture.
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

// bearer returns the content of the header by which a token is shown, or "".
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

// shown adds a token to requests. Where its files could not be read, none leave.
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
