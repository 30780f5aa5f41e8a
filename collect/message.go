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

// Lanes is the number of lanes. All collectors of a stream must use the same number.
const Lanes = 16

// Mirrored is the kind of reports that are copies of packets: the time of arrival at the
// collector in ns since 1970, in 8 bytes, and the copy with an Ethernet header.
const Mirrored = "mirrored"

// message is a message of the stream: an exporter, and some of its numbered reports. A
// message without reports says that time has passed.
type message struct {
	telemetry.Hello
	reports []telemetry.Report
}

// tick is the exporter name in messages that say that time has passed.
const tick = "time"

// encode returns a message with reports in their wire format.
func encode(h *telemetry.Hello, wire []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := h.Write(&b); err != nil {
		return nil, err
	}
	b.Write(wire)
	return b.Bytes(), nil
}

// decode decodes a message. The bodies of its reports refer to b.
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

// token identifies a start of an exporter in subjects.
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

// laneSubject is the subject of all reports of a lane.
func laneSubject(lane int) string { return reportSubject(lane, ">") }
