package telemetry

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Hello is what an exporter says first on a connection to a collector. Reports
// follow in their wire form. The collector answers with sequence numbers, 8 bytes
// each, the most significant first: all reports up to there are kept, and need not
// be sent again. An exporter that connects anew sends all that was not answered.
type Hello struct {
	Version int    `json:"version"` // 1
	Name    string `json:"name"`    // of the exporter, the same from start to start
	// Boot is that of the exporter's reports. It is the wall clock's time, in ns since
	// 1970, at which the clock of its nodes was 0: by it a collector compares times of
	// several exporters.
	Boot  uint64 `json:"boot"`
	Nodes []Node `json:"nodes"`
}

// Node is a switch that an exporter has.
type Node struct {
	ID      uint16 `json:"id"`
	Name    string `json:"name"`
	Workers int    `json:"workers"`
}

// HelloVersion is the version of this protocol.
const HelloVersion = 1

// maxHello bounds a hello: 4,095 nodes with long names.
const maxHello = 1 << 20

// Write writes a hello: its length in 4 bytes, and JSON.
func (h *Hello) Write(w io.Writer) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// ReadHello reads a hello.
func ReadHello(r io.Reader) (*Hello, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxHello {
		return nil, fmt.Errorf("this is no exporter: its first message has %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	h := new(Hello)
	if err := json.Unmarshal(text, h); err != nil {
		return nil, fmt.Errorf("this is no exporter: %w", err)
	}
	return h, h.validate()
}

func (h *Hello) validate() error {
	switch {
	case h.Version != HelloVersion:
		return fmt.Errorf("an exporter speaks version %d, this program version %d", h.Version, HelloVersion)
	case h.Name == "" || len(h.Name) > 64:
		return fmt.Errorf("the name of an exporter has %d bytes; 1 to 64 are possible", len(h.Name))
	case h.Boot == 0:
		return errors.New("an exporter says no boot")
	}
	for _, n := range h.Nodes {
		if n.Workers < 1 || n.Workers > 256 || len(n.Name) > 256 {
			return fmt.Errorf("exporter %s: switch %q has %d workers", h.Name, n.Name, n.Workers)
		}
	}
	return nil
}
