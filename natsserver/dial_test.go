package natsserver

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// A secret comes by a file, and not by a URL, which a list of processes shows. The error
// does not repeat it.
func TestSecretsComeByFiles(t *testing.T) {
	const secret = "3f786850e387550fdab836ed7e6dc881"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Program: "test", Dir: t.TempDir(), Listen: "127.0.0.1:0", Limit: 1 << 20, Token: secret, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	url := s.ClientURL()
	host := strings.TrimPrefix(url, "nats://")
	for _, u := range []string{"nats://" + secret + "@" + host, secret + "@" + host, "nats://user:" + secret + "@" + host, url + ",nats://" + secret + "@" + host} {
		if nc, err := Dial(u, "test", Login{}); !errors.Is(err, ErrSecretInURL) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, %v", u, nc, err)
		}
	}
	if nc, err := Dial(url, "test", Login{}); err == nil || nc != nil {
		t.Errorf("without the token: %v", err)
	}
	nc, err := Dial(url, "test", Login{Token: file})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()

	users, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, Username: "me", Password: secret, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	users.Start()
	defer users.Shutdown()
	if err := os.WriteFile(file, []byte("me:"+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if nc, err = Dial(users.ClientURL(), "test", Login{Token: file}); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if err := os.WriteFile(file, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(url, "test", Login{Token: file}); err == nil || !strings.Contains(err.Error(), file+" is empty") {
		t.Error(err)
	}
}
