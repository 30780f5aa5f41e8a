package e2e

import (
	"fmt"
	"testing"

	"gswitch/control/api"
)

// Queues of ports are spread over two workers; frames cross between them.
func TestTwoWorkers(t *testing.T) {
	l := newLab(t, 3, labOptions{queues: 2})
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
workers: [{poll: adaptive}, {poll: sleep}]
switches:
  - name: s1
    ports:
      - {interface: d0, netns: %[1]s, queues: 2, workers: [0, 1]}
      - {interface: d1, netns: %[1]s, queues: 2, workers: [1, 0]}
      - {interface: d2, netns: %[1]s, queues: 2, workers: [1]}
    fdb: {static: [{mac: "%[2]s", port: d0}, {mac: "%[3]s", port: d1}, {mac: "%[4]s", port: d2}]}
`, l.sw, l.hosts[0].mac, l.hosts[1].mac, l.hosts[2].mac))

	const flows, each = 64, 20
	const dstPort = 9001
	var sockets, senders []*raw
	for _, h := range l.hosts {
		senders = append(senders, h.raw(t, etherTest))
		sockets = append(sockets, h.raw(t, 0x0800))
	}
	// Every host to every other; the kernel chooses the queue by flow.
	sent := uint64(0)
	for i, from := range l.hosts {
		for j, to := range l.hosts {
			if i == j {
				continue
			}
			for n := range each {
				for k := range flows {
					f := flow{dst: to.mac, src: from.mac, srcIP: [4]byte{10, 0, 0, byte(i + 1)}, dstIP: [4]byte{10, 0, 0, byte(j + 1)},
						srcPort: uint16(20000 + k), dstPort: dstPort, size: 100}
					if err := senders[i].send(f.frame(uint64(n)<<32 | uint64(i*flows+k))); err != nil {
						t.Fatal(err)
					}
					sent++
				}
			}
			// Each flow is whole and in order.
			next := map[uint64]uint64{}
			for range flows * each {
				b, _ := sockets[j].recv(patience)
				if b == nil {
					t.Fatalf("frames from host %d to %d are lost; drops: %v", i, j, d.drops())
				}
				n, ours := flowNumber(b, dstPort)
				if key := n & 0xffffffff; !ours || n>>32 != next[key] {
					t.Fatalf("from host %d to %d: flow %d: frame %d, want %d", i, j, key, n>>32, next[key])
				}
				next[n&0xffffffff]++
			}
		}
	}
	var rx, tx uint64
	for _, h := range l.hosts {
		p := d.ports()[h.port()]
		rx, tx = rx+p.RxFrames, tx+p.TxFrames
		if p.RxFrames != 2*flows*each || p.TxFrames != 2*flows*each || p.Queues != 2 {
			t.Errorf("%s: %d frames received and %d sent over %d queues, want %d over 2", p.Name, p.RxFrames, p.TxFrames, p.Queues, 2*flows*each)
		}
	}
	if rx != sent || tx != sent {
		t.Errorf("%d frames were sent by hosts, %d received and %d sent by the switch", sent, rx, tx)
	}
	if drops := d.drops(); len(drops) > 0 {
		t.Errorf("drops: %v", drops)
	}
	var enqueued, dequeued uint64
	for _, q := range show(d, &api.Queues{}, "queues").Queues {
		enqueued, dequeued = enqueued+q.EnqueuedFrames, dequeued+q.DequeuedFrames
	}
	if enqueued != sent || dequeued != sent {
		t.Errorf("%d frames enqueued, %d dequeued, want %d", enqueued, dequeued, sent)
	}
	for _, w := range show(d, &api.Workers{}, "workers").Workers {
		if w.FramesPerVector == 0 {
			t.Errorf("worker %d received nothing: %v", w.Worker, w)
		}
	}
	d.stop(l.sw)
}
