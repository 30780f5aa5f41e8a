package hostnic

import "testing"

// Keys reveal nothing of each other: an attacker that has one is not nearer to the next, in
// the same process or in another one.
func TestKeysAreNotGuessed(t *testing.T) {
	var keys [2][]uint32
	for i := range keys {
		m := Memory{keys: NewDraws("test", uint64(i))}
		for range 2000 {
			k, err := m.RegisterVirtual(0, 1<<20, RemoteRead)
			must(t, err)
			k, err = m.grant(k, 0)
			must(t, err)
			keys[i] = append(keys[i], k)
		}
		// What is near a key opens nothing, nor do keys of another process.
		tried, opened := 0, 0
		for _, k := range keys[i] {
			for d := uint32(1); d <= 255; d++ {
				for _, guess := range [...]uint32{k + d, k - d, k ^ d<<24, d, d << 8} {
					if tried++; m.reach(0, guess, 0, 1, RemoteRead) != nil {
						opened++
					}
				}
			}
		}
		// 2000 keys among 2^32 numbers: one in two million guesses is right.
		if opened > 12 {
			t.Errorf("%d of %d guesses are keys", opened, tried)
		}
		for _, k := range keys[i] {
			if m.lookup(k) == nil {
				t.Fatalf("key %#x is lost", k)
			}
		}
	}
	same := 0
	for i := range keys[0] {
		if keys[0][i] == keys[1][i] {
			same++
		}
	}
	if same > 1 {
		t.Errorf("%d keys of two processes are the same", same)
	}
}

// A granted key is good for its queue pair alone, and ends with the region.
func TestGrant(t *testing.T) {
	var m Memory
	k, err := m.Register(100, make([]byte, 50), RemoteRead)
	must(t, err)
	g, err := m.grant(k, 7)
	must(t, err)
	other, err := m.grant(k, 8)
	must(t, err)
	if m.reach(7, g, 100, 50, RemoteRead) == nil {
		t.Error("a granted key does not open its region")
	}
	if m.reach(8, g, 100, 50, RemoteRead) != nil || m.reach(0, g, 100, 50, RemoteRead) != nil {
		t.Error("a granted key is good for another queue pair")
	}
	if m.reach(7, g, 100, 51, RemoteRead) != nil || m.reach(7, g, 100, 50, RemoteWrite) != nil {
		t.Error("a granted key gives more than its region has")
	}
	must(t, m.Deregister(g))
	if m.reach(7, g, 100, 50, RemoteRead) != nil || m.reach(8, other, 100, 50, RemoteRead) == nil || m.reach(9, k, 100, 50, RemoteRead) != nil {
		t.Error("the end of a grant is that of another key, or none, or the region's own key opens it")
	}
	must(t, m.Deregister(k))
	if m.reach(8, other, 100, 50, RemoteRead) != nil {
		t.Error("a granted key outlives its region")
	}
	if _, err := m.grant(k, 1); err == nil {
		t.Error("a region that is gone was granted")
	}
	if m.open != 0 {
		t.Errorf("%d regions are left", m.open)
	}
}
