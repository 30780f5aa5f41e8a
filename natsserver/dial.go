package natsserver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"gswitch/wholefile"
)

// ErrSecretInURL refuses what a list of processes would show to everybody.
var ErrSecretInURL = errors.New("the URL has a user, a password or a token, which every user of this machine can see in the list of processes: leave it out, and name a file with it (--token-file, which takes USER:PASSWORD too, or --creds)")

// Login says by which files a program shows who it is. Either name may be empty.
type Login struct {
	Creds string // NATS credentials
	Token string // a token, or USER:PASSWORD
}

// Dial connects to the servers of a cluster, URLs with commas between, under the name
// of a program.
func Dial(urls, program string, l Login) (*nats.Conn, error) {
	if strings.Contains(urls, "@") {
		return nil, fmt.Errorf("--nats: %w", ErrSecretInURL)
	}
	o := []nats.Option{nats.Name(program), nats.MaxReconnects(-1)}
	if l.Creds != "" {
		o = append(o, nats.UserCredentials(l.Creds))
	}
	if l.Token != "" {
		secret, err := ReadToken(l.Token)
		if err != nil {
			return nil, err
		}
		if user, password, ok := strings.Cut(secret, ":"); ok {
			o = append(o, nats.UserInfo(user, password))
		} else {
			o = append(o, nats.Token(secret))
		}
	}
	nc, err := nats.Connect(urls, o...)
	if err != nil {
		return nil, fmt.Errorf("NATS at %s: %w", urls, err)
	}
	return nc, nil
}

// ReadToken reads the token in a file.
func ReadToken(file string) (string, error) {
	data, err := wholefile.Read(file, 4<<10)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	if s := strings.TrimSpace(string(data)); s != "" {
		return s, nil
	}
	return "", fmt.Errorf("--token-file: %s is empty", file)
}
