package telemetry

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Hello is the first message of an exporter on a connection to a collector. Reports
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
	Nodes nodes  `json:"nodes"`
	// Missed is for collectors, which note it in what they keep: the number of the last
	// report that was lost before it came. An exporter leaves it out.
	Missed uint64 `json:"missed,omitempty"`
}

// Node is a switch that an exporter has.
type Node struct {
	ID      uint16 `json:"id"`
	Name    string `json:"name"`
	Workers int    `json:"workers"`
}

// HelloVersion is the version of this protocol.
const HelloVersion = 1

// What a hello has at most: bytes, and nodes.
const (
	maxHello = 1 << 20
	maxNodes = 4095
)

// nodes are those of a hello.
type nodes []Node

// UnmarshalJSON reads them one by one, so that a text takes no more memory than a
// hello may.
func (v *nodes) UnmarshalJSON(text []byte) error {
	*v = nil
	if string(text) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.New("its nodes are no list")
	}
	for d.More() {
		if len(*v) == maxNodes {
			return fmt.Errorf("more than %d nodes", maxNodes)
		}
		var n Node
		if err := d.Decode(&n); err != nil {
			return err
		}
		*v = append(*v, n)
	}
	return nil
}

// Write writes a hello: its length in 4 bytes, and JSON.
func (h *Hello) Write(w io.Writer) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// HelloSize is how many bytes ReadHello will take off a reader. It takes none.
func HelloSize(r *bufio.Reader) (int, error) {
	head, err := r.Peek(4)
	if err != nil {
		return 0, err
	}
	n, err := helloSize(head)
	return len(head) + n, err
}

func helloSize(head []byte) (int, error) {
	n := binary.BigEndian.Uint32(head)
	if n > maxHello {
		return 0, fmt.Errorf("this is no exporter: its first message has %d bytes", n)
	}
	return int(n), nil
}

// ReadHello reads a hello.
func ReadHello(r io.Reader) (*Hello, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n, err := helloSize(head[:])
	if err != nil {
		return nil, err
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
		return fmt.Errorf("an exporter has version %d, this program version %d", h.Version, HelloVersion)
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
