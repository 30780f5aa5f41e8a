package bump

import (
	"errors"

	"gswitch/frame"
)

// Configure is the command that replaces a bump's configuration: Reconfigure. All
// else that a bump does comes of its frames.
type Configure struct {
	Bump   *Bump
	Config *Config
	// Document is the text that Config was made from. Decoding returns only the document:
	// decoding that must give the same Config.
	Document []byte
	Refused  error // when it is done
}

// configureKind is the first byte of the encoding.
const configureKind = 1

// Do implements frame.Command.
func (c *Configure) Do(now frame.Time) { c.Refused = c.Bump.Reconfigure(now, c.Config) }

// Encode implements frame.Command.
func (c *Configure) Encode(b []byte) []byte { return append(append(b, configureKind), c.Document...) }

// DecodeCommand is the inverse of Configure.Encode: it returns the command with
// its Document alone.
func DecodeCommand(b []byte) (*Configure, error) {
	if len(b) == 0 || b[0] != configureKind {
		return nil, errors.New("a command of a bump of an unknown kind")
	}
	return &Configure{Document: b[1:]}, nil
}
