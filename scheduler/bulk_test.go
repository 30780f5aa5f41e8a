package scheduler

import (
	"reflect"
	"testing"

	"gswitch/frame"
)

// Frames that are queued and sent in vectors leave the same port behind, and
// carry the same marks, as those that are queued and taken one by one.
func TestBulkIsOneByOne(t *testing.T) {
	for seed := uint64(0); seed < 60; seed++ {
		rng := frame.NewRand(seed)
		var cfg PortConfig
		cfg.Overhead = rng.Uint32n(2) * 24
		switch seed % 6 {
		case 1:
			cfg.Rate = 1e9
		case 2:
			cfg.Queues[1].MaxRate = 1e8
		case 3:
			cfg.Queues[0].Weight, cfg.Queues[1].Weight = 1, 3
		case 4:
			cfg.Queues[1].ECN = ECN{KMin: 2000, KMax: 9000, PMax: 0.5}
		case 5:
			cfg.Queues[1].Order = FIFO{}
		}
		one, all := newRig(t, cfg), newRig(t, cfg)
		now := frame.Time(0)
		for step := range 400 {
			now += frame.Time(rng.Uint32n(20_000))
			switch rng.Uint32n(8) {
			case 0:
				queue, until := int(rng.Uint32n(3)), now+frame.Time(rng.Uint32n(60_000))
				one.p.Pause(queue, until)
				all.p.Pause(queue, until)
			case 1:
				one.p.EnqueueControl(one.frame(0, 64))
				all.p.EnqueueControl(all.frame(0, 64))
			case 2, 3, 4:
				queue, n := int(rng.Uint32n(3)), 1+int(rng.Uint32n(40))
				var v []frame.Ref
				for range n {
					if one.pool.Available() == 0 {
						break
					}
					wire, ect := 60+rng.Uint32n(1455), rng.Uint32n(2)*frame.IsECT
					r, s := one.frame(queue, wire), all.frame(queue, wire)
					one.pool.Meta(r).Flags, all.pool.Meta(s).Flags = ect, ect
					one.p.Enqueue(now, r)
					v = append(v, s)
				}
				if len(v) > 0 && all.p.Bulk()>>queue&1 != 0 {
					all.p.EnqueueAll(now, v)
				} else {
					for _, s := range v {
						all.p.Enqueue(now, s)
					}
				}
			default:
				k := 1 + int(rng.Uint32n(64))
				n := all.p.Dequeue(now, all.out[:k])
				for i := range n {
					if one.p.Dequeue(now, one.out[:1]) != 1 {
						t.Fatalf("seed %d step %d: frame %d of %d does not leave when asked for alone", seed, step, i, n)
					}
					a, b := *one.pool.Meta(one.out[0]), *all.pool.Meta(all.out[i])
					a.QNext, a.QPrev, b.QNext, b.QPrev = 0, 0, 0, 0
					if !reflect.DeepEqual(geometry(a), geometry(b)) {
						t.Fatalf("seed %d step %d frame %d: alone\n%+v\nin a vector\n%+v", seed, step, i, a, b)
					}
					one.pool.Free(one.out[0])
					all.pool.Free(all.out[i])
				}
				if n < k && one.p.Dequeue(now, one.out[:1]) != 0 {
					t.Fatalf("seed %d step %d: a frame leaves only when asked for alone", seed, step)
				}
			}
			for q := range 3 {
				if a, b := one.p.Stats(now, q, false), all.p.Stats(now, q, false); a != b {
					t.Fatalf("seed %d step %d queue %d: one by one\n%+v\nin vectors\n%+v", seed, step, q, a, b)
				}
				if *one.p.Sojourn(q) != *all.p.Sojourn(q) {
					t.Fatalf("seed %d step %d queue %d: the times that frames waited differ", seed, step, q)
				}
			}
			if one.p.Wake(now) != all.p.Wake(now) || one.p.Empty() != all.p.Empty() {
				t.Fatalf("seed %d step %d: wakes at %d and %d", seed, step, one.p.Wake(now), all.p.Wake(now))
			}
		}
	}
}

// geometry takes out where in its arena a frame is.
func geometry(m frame.Meta) frame.Meta {
	m.Head, m.Next = 0, 0
	return m
}
