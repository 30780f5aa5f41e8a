package stack

// table finds the connection of a segment: open addressing, as a map's worth of
// work for every frame would show.
type table struct {
	keys  []uint64 // 0: free
	slots []uint32
	n     int
	shift uint8
}

// key is what distinguishes the connections of a host.
func key(remote [4]byte, remotePort, localPort uint16) uint64 {
	return uint64(remote[0])<<56 | uint64(remote[1])<<48 | uint64(remote[2])<<40 | uint64(remote[3])<<32 | uint64(remotePort)<<16 | uint64(localPort)
}

func (t *table) home(k uint64) uint64 { return k * 0x9e3779b97f4a7c15 >> t.shift }

// find returns the slot of a key.
func (t *table) find(k uint64) (uint32, bool) {
	if t.n == 0 {
		return 0, false
	}
	mask := uint64(len(t.keys) - 1)
	for i := t.home(k); t.keys[i] != 0; i = (i + 1) & mask {
		if t.keys[i] == k {
			return t.slots[i], true
		}
	}
	return 0, false
}

// put adds a key that is not there.
func (t *table) put(k uint64, slot uint32) {
	if 2*(t.n+1) > len(t.keys) {
		t.grow()
	}
	mask := uint64(len(t.keys) - 1)
	i := t.home(k)
	for t.keys[i] != 0 {
		i = (i + 1) & mask
	}
	t.keys[i], t.slots[i] = k, slot
	t.n++
}

func (t *table) grow() {
	old := *t
	size := max(16, 2*len(old.keys))
	*t = table{keys: make([]uint64, size), slots: make([]uint32, size), shift: 64}
	for size > 1 {
		size >>= 1
		t.shift--
	}
	for i, k := range old.keys {
		if k != 0 {
			t.put(k, old.slots[i])
		}
	}
}

// drop takes a key out and moves those behind it up, so that none is lost.
func (t *table) drop(k uint64) {
	mask := uint64(len(t.keys) - 1)
	i := t.home(k)
	for t.keys[i] != k {
		if t.keys[i] == 0 {
			return
		}
		i = (i + 1) & mask
	}
	t.n--
	for j := i; ; {
		t.keys[i] = 0
		for {
			j = (j + 1) & mask
			if t.keys[j] == 0 {
				return
			}
			if h := t.home(t.keys[j]); (j-h)&mask >= (j-i)&mask {
				break // its home is not between the gap and itself
			}
		}
		t.keys[i], t.slots[i] = t.keys[j], t.slots[j]
		i = j
	}
}
