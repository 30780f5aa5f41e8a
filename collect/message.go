package collect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gswitch/telemetry"
)

// Lanes is how many lanes reports are divided into. All collectors of a stream must
// have the same.
const Lanes = 16

// Mirrored is the kind of reports that are copies of packets: when the collector got
// it, in ns since 1970 in 8 bytes, and the copy with an Ethernet header.
const Mirrored = "mirrored"

// message is what the stream holds: who made reports, and some of them, by their
// numbers. One without reports says that time goes on.
type message struct {
	telemetry.Hello
	reports []telemetry.Report
}

// tick is the name of the exporter of messages that say that time goes on.
const tick = "time"

// encode returns a message of reports in their wire form.
func encode(h *telemetry.Hello, wire []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := h.Write(&b); err != nil {
		return nil, err
	}
	b.Write(wire)
	return b.Bytes(), nil
}

// decode reads a message. The bodies of its reports are parts of b.
func decode(b []byte) (*message, error) {
	r := bytes.NewReader(b)
	h, err := telemetry.ReadHello(r)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("a message is cut off")
		}
		return nil, err
	}
	m := &message{Hello: *h}
	for rest := b[len(b)-r.Len():]; len(rest) > 0; {
		rep, n, err := telemetry.ParseReport(rest)
		if err != nil {
			return nil, fmt.Errorf("reports of %s: %w", h.Name, err)
		}
		m.reports = append(m.reports, rep)
		rest = rest[n:]
	}
	return m, nil
}

// token names a start of an exporter in subjects.
func token(h *telemetry.Hello) string {
	safe := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}
	return strings.Map(safe, h.Name) + "-" + strconv.FormatUint(h.Boot, 16)
}

func reportSubject(lane int, token string) string {
	return fmt.Sprintf("gswitch.report.%d.%s", lane, token)
}

// laneSubject is that of all reports of a lane.
func laneSubject(lane int) string { return reportSubject(lane, ">") }
