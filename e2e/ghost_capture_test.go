package e2e

import (
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/control/api"
	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/wire"
)

// captureGhost starts a capture and returns when it has begun.
func captureGhost(t *testing.T, d *daemon, file string, args ...string) *exec.Cmd {
	t.Helper()
	var log syncBuffer
	c := exec.Command(d.Path, append([]string{"--socket", d.socket, "capture", "-w", file}, args...)...)
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	eventually(t, "the capture begins", func() error {
		if size(file) == 0 {
			return fmt.Errorf("%s is empty; log: %s", file, log.String())
		}
		return nil
	})
	return c
}

// What a host sends and receives is in the capture, and tshark reads it: data
// and acknowledgements of RoCEv2, telemetry in between, what was dropped and
// why. A filter, a direction and a number of frames select.
func TestGhostCapture(t *testing.T) {
	n := newGhostNet(t, 3, 1)
	a, b := n.ghosts[0], n.ghosts[1]
	dir := t.TempDir()
	all := filepath.Join(dir, "all.pcapng")
	c := captureGhost(t, a, all, "--drops")

	const packets = 20
	r := asked(a, &api.TransferReport{}, "send", "--to", "10.0.0.2", "--size", "20kB", "--int", "none", "--cc", "dctcp")
	if r.Result.VerifiedBytes != 20e3 {
		t.Fatalf("%v", r)
	}
	// To a port without a listener.
	stray := flow{dst: n.hosts[0].mac, src: n.hosts[2].mac, srcIP: [4]byte{10, 0, 0, 9}, dstIP: [4]byte{10, 0, 0, 1}, dstPort: 9999, size: 100}
	if err := n.hosts[2].raw(t, unix.ETH_P_IP).send(stray.frame(1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the capture has the frame that is dropped", func() error {
		rows := tshark(t, all, "frame.comment", "udp.dstport", "frame.interface_name")
		for _, row := range rows {
			if row[0] == "drop: "+frame.LocalUnhandled.String() && row[1] == "9999" && row[2] == "g0/eth0" {
				return nil
			}
		}
		return fmt.Errorf("it has %v; drops: %s", rows, a.do("show", "drops"))
	})
	c.Process.Signal(unix.SIGINT)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, c.Stderr)
	}
	data, acks := map[string]bool{}, 0
	for _, row := range tshark(t, all, "frame.interface_name", "frame.packet_flags_direction", "infiniband.bth.opcode", "infiniband.bth.destqp",
		"infiniband.aeth.syndrome", "_ws.malformed", "ip.src", "infiniband.bth.psn") {
		if row[2] == "" {
			continue // ARP, the connection manager, the stray one
		}
		op, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(row)
		}
		qp, _ := strconv.ParseUint(strings.TrimPrefix(row[3], "0x"), 16, 32)
		switch {
		case row[0] != "g0/eth0" || row[5] != "":
			t.Errorf("a frame is %v", row)
		case op <= 5 && row[1] == "0x00000002" && uint32(qp) == r.RemoteQp && row[6] == "10.0.0.1": // Send First, Middle, Last ... (IBTA table 38)
			data[row[7]] = true
		case op == int(wire.RCAcknowledge) && row[1] == "0x00000001" && uint32(qp) == r.LocalQp && row[6] == "10.0.0.2" && row[4] != "":
			acks++
		default:
			t.Errorf("a frame is %v", row)
		}
	}
	if len(data) != packets || acks == 0 {
		t.Errorf("%d data packets, %d acknowledgements", len(data), acks)
	}

	// HPCC's block stands between UDP and BTH, with what the switch wrote.
	some := filepath.Join(dir, "some.pcapng")
	c = captureGhost(t, b, some, "--in", "-n", "5", "udp", "and", "src", "host", "10.0.0.1", "and", "greater", "500")
	asked(a, &api.TransferReport{}, "send", "--to", "10.0.0.2", "--size", "20kB", "--cc", "hpcc")
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, c.Stderr)
	}
	rows := tshark(t, some, "frame.packet_flags_direction", "udp.dstport", "udp.payload")
	if len(rows) != 5 {
		t.Fatalf("%d frames were captured, not 5", len(rows))
	}
	profile := inband.ProfileFor(200e6)
	codec := inband.NewCodec(inband.HPCC, &profile)
	for _, row := range rows {
		payload, err := hex.DecodeString(strings.ReplaceAll(row[2], ":", ""))
		if err != nil || len(payload) < wire.HPCCLen+wire.BTHLen {
			t.Fatalf("a payload is %q", row[2])
		}
		var path inband.Path
		if k, why := codec.Decode(payload, &path); why != frame.Keep || k != wire.HPCCLen || path.N != 1 || path.Hops[0].Rate != 200e6 {
			t.Errorf("telemetry is %d bytes, %v, %+v", k, why, path)
		}
		if bth := wire.BTH(payload[wire.HPCCLen:]); row[0] != "0x00000001" || row[1] != fmt.Sprint(wire.HPCCPort) || bth.Opcode() > 5 || bth.DestQP() == 0 {
			t.Errorf("%v: opcode %d to %#x", row[:2], bth.Opcode(), bth.DestQP())
		}
	}
	if out, code := a.try("capture", "-w", filepath.Join(dir, "none"), "udp", "prot", "7"); code != 2 || !strings.Contains(out, `"prot" is not expected here`) || size(filepath.Join(dir, "none")) != 0 {
		t.Errorf("a filter that is wrong: exit code %d, %s", code, out)
	}
	a.stop(n.hosts[0].ns)
	b.stop(n.hosts[1].ns)
}
