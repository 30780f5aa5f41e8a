package hostnic

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/transport"
)

// tshark reads the operations of a queue pair that goes back as the standard
// has them, with their extended headers.
func TestTsharkDissectsOperations(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	x := newVerbsPair(t, transport.GoBackN, nil)
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4) // pcap 2.4, Ethernet
	b = le.AppendUint32(b, 2|4<<16)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 65535), 1)
	x.seen = func(_ int, m *frame.Meta, f []byte) {
		b = le.AppendUint64(b, 0)
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(f))), uint32(len(f)))
		b = append(b, bytes.Clone(f)...)
	}
	x.recv(1, make([]byte, 10))
	x.recv(2, nil)
	x.post(WorkRequest{Verb: SendImmediate, Local: make([]byte, 3), Imm: 0x01020304})
	x.post(WorkRequest{Verb: WriteImmediate, Local: make([]byte, 2001), RemoteVA: memBase + 16, Imm: 5})
	x.post(WorkRequest{Verb: Read, Local: make([]byte, 1001), RemoteVA: memBase + 32})
	x.post(WorkRequest{Verb: FetchAdd, RemoteVA: memBase + 8, Operand: 7})
	x.post(WorkRequest{Verb: CompareSwap, RemoteVA: memBase + 8, Operand: 9, Compare: 7})
	x.run(frame.Millisecond)
	x.post(WorkRequest{Verb: Write, Local: make([]byte, 1), RemoteVA: memBase - 1})
	x.run(2 * frame.Millisecond)
	if got := words(take(x.a)); got != "send:0 write:1 read:2 atomic:3 atomic:4 write:5!2" {
		t.Fatal(got)
	}
	path := filepath.Join(t.TempDir(), "rdma.pcap")
	must(t, os.WriteFile(path, b, 0o600))
	args := []string{"-n", "-r", path, "-T", "fields", "-E", "separator=|"}
	for _, f := range []string{"bth.opcode", "bth.padcnt", "reth.va", "reth.dmalen", "immdt", "atomiceth.swapdt", "atomiceth.cmpdt", "aeth.syndrome.opcode", "aeth.syndrome.error_code", "aeth.msn", "atomicacketh.origremdt"} {
		args = append(args, "-e", "infiniband."+f)
	}
	cmd := exec.Command(tshark, append(args, "-e", "_ws.malformed")...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.Output()
	must(t, err)
	for _, want := range []string{
		"5|1|||01020304,01020304|||||||",       // Send Only with Immediate
		"6|0|0x00007f0000000010|2001||||||||",  // Write First
		"7|0||||||||||",                        // Write Middle
		"9|3|||00000005,00000005|||||||",       // Write Last with Immediate
		"12|0|0x00007f0000000020|1001||||||||", // Read Request
		"20|0|0x00007f0000000008|||7|0|||||",   // Fetch Add
		"19|0|0x00007f0000000008|||9|7|||||",   // Compare Swap
		"17|0||||||0||2||",                     // ACK of two messages
		"13|0||||||0||3||", "15|3||||||0||5||", // Read Response First, Last
		"18|0||||||0||5|0|", "18|0||||||0||5|7|", // Atomic Acknowledge
		"10|3|0x00007effffffffff|1||||||||", // Write Only, before the region
		"17|0||||||3|2|5||",                 // NAK, remote access error
	} {
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("no frame reads %s", want)
		}
	}
}
