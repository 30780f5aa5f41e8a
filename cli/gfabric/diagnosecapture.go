package gfabric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"gswitch/capture"
	"gswitch/control/cli"
	"gswitch/deter"
	"gswitch/frame"
	"gswitch/table"
	"gswitch/tcp"
	"gswitch/wire"
)

// isCapture reports whether a file is a capture, by its name.
func isCapture(path string) bool {
	return strings.HasSuffix(path, ".pcapng") || strings.HasSuffix(path, ".pcap")
}

// analyse reports the TCP connections in a capture of any TCP implementation.
func (f *diagnoseFlags) analyse(out io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return cli.Input(err)
	}
	defer file.Close()
	in, err := capture.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var o deter.Observer
	begin, first := int64(0), true
	for {
		rec, b, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if first {
			begin, first = rec.Time, false
		}
		at := behindEthernet(b)
		if rec.Dir == capture.DirDrop || at < 0 {
			continue // it was seen when it came
		}
		s, flow, err := tcp.ParseHeaders(b[at:])
		if err != nil {
			continue
		}
		from := netip.AddrPortFrom(netip.AddrFrom4(flow.Src), flow.SrcPort)
		to := netip.AddrPortFrom(netip.AddrFrom4(flow.Dst), flow.DstPort)
		o.Packet(frame.Time(rec.Time-begin), rec.Iface<<2|uint32(rec.Dir), from, to, &s)
	}
	lost := uint64(0)
	for _, i := range in.Interfaces() {
		lost += i.Lost
	}
	t := table.New("FROM", "TO", "AT", "LASTED", "PACKETS", "BYTES", "RETRANSMITTED", "TIMEOUTS", "LATE", "DUPLICATE ACKS", "ZERO WINDOWS")
	n := 0
	for _, c := range o.Connections() {
		if !strings.Contains(fmt.Sprintf("%v > %v", c.Ends[0], c.Ends[1]), f.only) {
			continue
		}
		n++
		for end := range c.By {
			d := &c.By[end]
			t.Row(c.Ends[end], c.Ends[1-end], c.From.Duration().Round(time.Microsecond), (c.To - c.From).Duration().Round(time.Microsecond),
				d.Packets, d.Bytes, d.Retransmitted, d.Timeouts, d.Late, d.Duplicates, d.ZeroWindows)
		}
	}
	if n == 0 {
		return inputf("%s has no connections of TCP over IPv4", path)
	}
	if err := t.Print(out); err != nil {
		return err
	}
	if lost > 0 {
		fmt.Fprintf(out, "the capture lost %d frames: what was sent again, late and duplicate may be more, and holes of its own count as late\n", lost)
	}
	_, err = fmt.Fprintf(out, "%d connections; this is an analysis of their packets, not a replay\n", n)
	return err
}

// behindEthernet returns where the IPv4 packet of a frame begins, -1 if it has none.
func behindEthernet(b []byte) int {
	for at := wire.EthernetLen; at <= len(b) && at <= wire.EthernetLen+2*wire.VLANLen; at += wire.VLANLen {
		switch binary.BigEndian.Uint16(b[at-2:]) {
		case wire.EtherTypeIPv4:
			return at
		case wire.EtherTypeVLAN, wire.EtherTypeQinQ:
		default:
			return -1
		}
	}
	return -1
}
