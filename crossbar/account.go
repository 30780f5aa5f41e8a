package crossbar

// account is the bytes of a queue by class. Drain bytes are sums of it: they
// are asked for where a queue is nearly full or above a threshold, and frames
// come and go all the time.
type account struct {
	bytes [8]uint32
	total uint32 // drain bytes of class 0
	peak  uint32 // highest total
}

func (a *account) add(class uint8, n uint32) {
	a.bytes[class&7] += n
	if a.total += n; a.total > a.peak {
		a.peak = a.total
	}
}

func (a *account) remove(class uint8, n uint32) {
	a.bytes[class&7] -= n
	a.total -= n
}

// drain returns the bytes of a class and those above it.
func (a *account) drain(class uint8) (sum uint32) {
	for _, n := range a.bytes[class&7:] {
		sum += n
	}
	return sum
}

func (a *account) drains() [8]uint32 { return drains(&a.bytes) }

// drains returns, of each class, what it has together with those above it.
func drains(of *[8]uint32) (v [8]uint32) {
	var sum uint32
	for c := 7; c >= 0; c-- {
		sum += of[c]
		v[c] = sum
	}
	return v
}
