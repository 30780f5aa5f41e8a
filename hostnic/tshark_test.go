package hostnic

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/wire"
)

// capturedTransfer sends between two NICs of real frames, with a loss and a congestion mark,
// and returns what crossed the cable, over IPv4 or IPv6.
func capturedTransfer(t *testing.T, v6 bool, mode *transport.Kind, telem inband.Mode) (frames [][]byte, sent, got []byte) {
	g := newRig(t, 256, 2048)
	p := newPairOn(t, g, func(i int, c *Config) {
		c.Virtual, c.CNP.Frames, c.PFC, c.PFCClasses = false, true, true, 8
		if v6 {
			c.Addr = netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i + 1)})
		}
	})
	sent = make([]byte, 20_101)
	rng := frame.NewRand(5)
	for i := range sent {
		sent[i] = byte(rng.Uint64())
	}
	got = make([]byte, len(sent))
	placed := make([]bool, 21)
	qa, _ := p.connect(func(c *QPConfig) {
		c.Transport = transport.Config{Recovery: mode, Cap: 40, RTOHigh: 100 * frame.Microsecond}
		c.INT = telem
		c.Place = placeFunc(func(_ uint32, packet uint64, b []byte) {
			if placed[packet] {
				t.Errorf("%v: packet %d placed twice", mode, packet)
			}
			placed[packet] = true
			copy(got[packet*1000:], b)
		})
	})
	p.lose = func(m *frame.Meta, b []byte) bool {
		frames = append(frames, bytes.Clone(b))
		if n := len(frames); n == 5 && !v6 {
			b[15] |= wire.CE
			wire.IPv4(b[14:34]).UpdateChecksum()
		} else if n == 5 {
			b[15] |= wire.CE << 4
		}
		return len(frames) == 3 || len(frames) == 7
	}
	must(t, p.a.SendBytes(0, qa, sent, 1))
	p.run(frame.Millisecond)
	if s := p.b.Counts(); s.Drops != [frame.NumReasons]uint64{} {
		t.Errorf("%v: drops %v", mode, s.Drops)
	}
	if len(take(p.a)) != 1 || len(take(p.b)) != 1 {
		t.Errorf("%v: not complete", mode)
	}
	return frames, sent, got
}

// Real bytes arrive as they were sent, each once, over both IPs, in every mode
// and with telemetry; what a bit error changes is caught by the ICRC.
func TestRealBytes(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, mode := range []*transport.Kind{transport.GoBackN, transport.IRN, transport.IRNGoBackN, transport.IRNNoSACK, transport.TCP} {
			for _, telem := range []inband.Mode{inband.None, inband.HPCC, inband.INTMD} {
				_, sent, got := capturedTransfer(t, v6, mode, telem)
				if !bytes.Equal(sent, got) {
					t.Errorf("IPv6 %v, %v, telemetry %v: bytes differ", v6, mode, telem)
				}
			}
		}
	}
	p := newPairOn(t, newRig(t, 64, 2048), func(_ int, c *Config) { c.Virtual = false })
	qa, _ := p.connect(nil)
	n := 0
	p.lose = func(_ *frame.Meta, b []byte) bool {
		if n++; n == 1 {
			b[500] ^= 1
		}
		return false
	}
	must(t, p.a.SendMessage(0, qa, 3000, 1))
	p.run(10 * frame.Millisecond)
	if p.b.Counts().Drops[frame.BadICRC] != 1 || len(take(p.b)) != 1 {
		t.Errorf("a bit error: %v", p.b.Counts().Drops)
	}
	p.drained()
}

// tshark reads what we send as RoCEv2 without complaint.
func TestTsharkDissects(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	var frames [][]byte
	for _, v6 := range []bool{false, true} {
		for _, mode := range []*transport.Kind{transport.GoBackN, transport.IRN} {
			f, _, _ := capturedTransfer(t, v6, mode, inband.None)
			frames = append(frames, f...)
		}
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4) // pcap 2.4, Ethernet
	b = le.AppendUint32(b, 2|4<<16)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 65535), 1)
	for i, f := range frames {
		b = le.AppendUint32(le.AppendUint32(b, uint32(i)), 0)
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(f))), uint32(len(f)))
		b = append(b, f...)
	}
	path := filepath.Join(t.TempDir(), "nic.pcap")
	must(t, os.WriteFile(path, b, 0o600))
	cmd := exec.Command(tshark, "-n", "-r", path, "-o", "ip.check_checksum:TRUE", "-T", "fields",
		"-e", "frame.protocols", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed", "-e", "_ws.expert.message", "-e", "_ws.col.info")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.Output()
	must(t, err)
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != len(frames) {
		t.Fatalf("tshark shows %d frames of %d", len(lines), len(frames))
	}
	var seen []string
	for _, line := range lines {
		// RoCEv2 has no UDP checksum, over IPv6 either (IBTA annex A17.3.1.2).
		line = strings.Replace(line, "Illegal checksum value (0)", "", 1)
		col := strings.Split(line, "\t")
		if !strings.Contains(col[0], ":udp:infiniband") {
			t.Errorf("not RoCEv2: %s", line)
		}
		seen = append(seen, col[1])
		for _, bad := range []string{"alformed", "hecksum", "ICRC"} {
			if strings.Contains(line, bad) {
				t.Errorf("%s", line)
			}
		}
	}
	slices.Sort(seen)
	if got := strings.Join(slices.Compact(seen), " "); got != "0 1 129 17 2" {
		t.Errorf("opcodes %s: want Send First, Middle and Last, acknowledgements and congestion notifications", got)
	}
}
