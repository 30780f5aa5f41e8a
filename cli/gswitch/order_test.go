package gswitch

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/control"
	"gswitch/control/api"
)

// What show queues --order reports a queue is what happened to frames, over AF_XDP:
// short ones wait behind long ones, first in, first out, and where the queue is full
// the last goes.
func TestOrderOfRealFramesIsShown(t *testing.T) {
	l := newLab(t)
	doc := fmt.Sprintf(`version: 1
workers: [{poll: sleep}]
memory: {frames: 8192}
switches:
  - name: s1
    ports:
      - {name: p1, interface: eth1, netns: %s}
      - {name: p2, interface: eth2, netns: %s, rate: 1Mbps, qos: q}
    qos: {q: {push_out: {queue: 10KB}, queues: [{queue: 0, rank: size, inversions: true}]}}
`, l.ns[0], l.ns[0])
	socket := filepath.Join(t.TempDir(), "s1.sock")
	d := startDaemon(t, socket, "-c", write(t, "switch.yaml", doc))
	l.send(t, 1, 0, 0) // teaches the switch where host 2 is
	if _, err := l.receive(0); err != nil {
		t.Fatal(err)
	}
	var q *api.Queue
	for q == nil || q.Inversions == nil || *q.Inversions == 0 || q.PushedOut == 0 {
		for i := range 100 {
			b := make([]byte, 64+136*(i%2))
			copy(b, l.macs[1][:])
			copy(b[6:], l.macs[0][:])
			binary.BigEndian.PutUint16(b[12:], testType)
			if _, err := unix.Write(l.hosts[0], b); err != nil {
				t.Fatal(err)
			}
		}
		m, err := control.Dial(socket).ListQueues(context.Background(), &api.ListRequest{Port: "p2"})
		if err != nil {
			t.Fatal(err)
		}
		q = m.Queues[0]
	}
	// Of 200 bytes less 64, to the end of a bucket of at most an eighth.
	const gap, end = 136, 136 * 9 / 8
	if q.Order != "fifo" || q.RankGapMax < gap || q.RankGapMax > end || q.RankGapP99 < gap || q.RankGapP99 > end || *q.Inversions > q.DequeuedFrames {
		t.Errorf("order %s, %d inversions of %d frames, gaps of %d at 99 %% and %d at most, want %d", q.Order, *q.Inversions, q.DequeuedFrames, q.RankGapP99, q.RankGapMax, gap)
	}
	out, errs, code := invoke(t, "", "--socket", socket, "show", "queues", "--order")
	head, rows, _ := strings.Cut(out, "\n")
	_, row, _ := strings.Cut(rows, "\np2 ")
	if f := strings.Fields("p2 " + row); code != 0 || !strings.Contains(head, "INVERSIONS") || len(f) < 12 || f[0] != "p2" || f[2] != "fifo" || f[8] == "0" || f[9] == "0" || f[11] != fmt.Sprint(q.RankGapMax) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, d.log.String())
	}
}
