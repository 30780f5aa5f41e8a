package pipeline

import (
	"sync/atomic"

	"gswitch/frame"
)

// FDB is the forwarding database of a bridge: (VLAN id, MAC) -> port. It is
// shared by all workers; no operation waits for another one.
//
// Entries live in buckets of eight slots, and a key may stand in either of two
// buckets. A slot is a key word and a value word, both atomic. The value word
// alone says whether the slot is in use:
//
//	free  --CAS-->  claimed  --store key, store value-->  live  --CAS-->  free
//
// Between the CAS and the store of the value the claimer owns the slot, so a
// key word never changes under a live value. A reader loads key, value and the
// key again; the second look discards a value that belongs to a later tenant
// of the slot.
//
// Two workers that learn one address at the same instant may claim a slot
// each. Both look through the two buckets again after publishing, so at least
// one of them sees the other, and the slot that stands later is freed.
type FDB struct {
	buckets []fdbBucket
	mask    uint64
	limit   int64
	fresh   uint64 // refresh a timestamp only when it is older, in ticks
	// Keys of the hash. With known keys an attacker could choose addresses that fill the
	// buckets of a station, so that it is not learned.
	k0, k1 uint64

	_        [64]byte
	count    atomic.Int64
	rejected atomic.Uint64
	share    atomic.Int64 // most learned entries of one port
	ports    [MaxPorts]fdbPort
	cursor   uint64 // next bucket that Age visits
}

type fdbBucket struct {
	key [fdbWays]atomic.Uint64
	val [fdbWays]atomic.Uint64
}

const (
	fdbWays = 8
	// A bucket takes every newcomer until this many slots are in use; beyond,
	// the emptier of the two buckets does. At the load limit (half of the
	// slots) four lookups in five thus end in the first bucket, while the
	// choice of two keeps a pair of full buckets practically impossible.
	fdbSpill = 6
)

// Layout of a value word: port 16 bits, live, static, last seen in ticks of
// 4096 ns (46 bits: nine years).
const (
	fdbLive      = 1 << 47
	fdbStatic    = 1 << 46
	fdbSeenMask  = fdbStatic - 1
	fdbPortShift = 48
	fdbTickShift = 12

	fdbFree    = 0
	fdbClaimed = 1 // not live
)

// MACKey packs a VLAN id (12 bits) and a MAC (48 bits, the first byte on the
// wire is the most significant) into the key of an FDB.
func MACKey(vid uint16, mac uint64) uint64 {
	return uint64(vid&0xfff)<<48 | mac&(1<<48-1)
}

// MAC returns the 48 bits of the MAC at b[0:6].
func MAC(b []byte) uint64 {
	_ = b[5]
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}

// LearnResult says what FDB.Learn did.
type LearnResult uint8

const (
	LearnRefreshed      LearnResult = iota // known on this port
	LearnNew                               // entered
	LearnMoved                             // was known on another port, now on this one
	LearnFull                              // not entered: no room, or the port has used up its share
	LearnStaticConflict                    // not changed: a static entry names another port
	LearnBusy                              // not entered: another worker is using the same slots; a later frame will be learned
)

var learnNames = [...]string{"refreshed", "new", "moved", "full", "static-conflict", "busy"}

func (r LearnResult) String() string {
	if int(r) < len(learnNames) {
		return learnNames[r]
	}
	return "unknown"
}

// FDBEntry is one entry as Entries shows it.
type FDBEntry struct {
	Key    uint64
	Port   uint16
	Static bool
	Seen   frame.Time // last seen, to 4.096 us and not finer than the granularity
}

// VID returns the VLAN id of the entry.
func (e FDBEntry) VID() uint16 { return uint16(e.Key >> 48) }

// MAC returns the 48 bits of the entry's address.
func (e FDBEntry) MAC() uint64 { return e.Key & (1<<48 - 1) }

// NewFDB returns an empty database for up to capacity entries (at least one). The time
// stamp of an entry is written only when it is older than granularity, so that not every
// frame of a station dirties a cache line. Ports are numbered below MaxPorts, and each
// may use all entries until SetShare is called. secret determines the positions of
// addresses; with 0 they are always the same.
func NewFDB(capacity int, granularity frame.Time, secret uint64) *FDB {
	capacity = max(capacity, 1)
	n := 2
	for n*fdbWays < 2*capacity {
		n <<= 1
	}
	f := &FDB{
		buckets: make([]fdbBucket, n),
		mask:    uint64(n - 1),
		limit:   int64(capacity),
		fresh:   uint64(max(granularity, 0)) >> fdbTickShift,
		k0:      mix0, k1: mix1,
	}
	if secret != 0 {
		f.k0, f.k1 = mix0^mix64(secret), mix1^mix64(secret^mix2)|1
	}
	f.SetShare(capacity)
	return f
}

// pair returns the two buckets of a key. They differ, as the table has at
// least two buckets and the second is an odd distance away.
func (f *FDB) pair(key uint64) (*fdbBucket, *fdbBucket) {
	h := fold(key^f.k0, f.k1)
	i := h & f.mask
	j := (i + (h>>32 | 1)) & f.mask
	return &f.buckets[i], &f.buckets[j]
}

// find returns the slot of key in b and its value, or -1.
func (b *fdbBucket) find(key uint64) (int, uint64) {
	for i := range b.key {
		if b.key[i].Load() == key {
			if v := b.val[i].Load(); v&fdbLive != 0 && b.key[i].Load() == key {
				return i, v
			}
		}
	}
	return -1, 0
}

// Lookup returns the port of key.
func (f *FDB) Lookup(key uint64) (port uint16, ok bool) {
	b, c := f.pair(key)
	if i, v := b.find(key); i >= 0 {
		return uint16(v >> fdbPortShift), true
	}
	if i, v := c.find(key); i >= 0 {
		return uint16(v >> fdbPortShift), true
	}
	return frame.NoPort, false
}

// LookupVec writes the port of keys[i] to ports[i], or frame.NoPort.
func (f *FDB) LookupVec(keys []uint64, ports []uint16) {
	ports = ports[:len(keys)]
	for i, k := range keys {
		ports[i], _ = f.Lookup(k)
	}
}

// Learn records that key was seen as a source on port. old is the port in the previous
// entry: port itself, or another one if it moved or is static.
func (f *FDB) Learn(now frame.Time, key uint64, port uint16) (r LearnResult, old uint16) {
	b, c := f.pair(key)
	if i, v := b.find(key); i >= 0 {
		return f.renew(b, i, v, now, port)
	}
	if i, v := c.find(key); i >= 0 {
		return f.renew(c, i, v, now, port)
	}
	return f.enter(b, c, key, fdbValue(port, now)), port
}

// LearnVec learns keys[i] on one port for a whole vector and returns how many
// entries are new or moved.
func (f *FDB) LearnVec(now frame.Time, keys []uint64, port uint16) (changed int) {
	for _, k := range keys {
		if r, _ := f.Learn(now, k, port); r == LearnNew || r == LearnMoved {
			changed++
		}
	}
	return changed
}

func fdbValue(port uint16, now frame.Time) uint64 {
	return uint64(port)<<fdbPortShift | fdbLive | uint64(now)>>fdbTickShift&fdbSeenMask
}

// renew updates a live slot whose value is v.
func (f *FDB) renew(b *fdbBucket, i int, v uint64, now frame.Time, port uint16) (LearnResult, uint16) {
	old := uint16(v >> fdbPortShift)
	if v&fdbStatic != 0 {
		if old != port {
			return LearnStaticConflict, old
		}
		return LearnRefreshed, old
	}
	nv := fdbValue(port, now)
	if old == port {
		// Where the CAS fails another worker has just renewed the entry, or
		// it was removed; both are newer than this frame.
		if seen := v & fdbSeenMask; nv&fdbSeenMask > seen+f.fresh {
			b.val[i].CompareAndSwap(v, nv)
		}
		return LearnRefreshed, old
	}
	if !f.take(port) {
		// The station is no longer where the entry says, and frames for it
		// that are flooded reach it.
		f.drop(b, i, v)
		return LearnFull, old
	}
	if !b.val[i].CompareAndSwap(v, nv) {
		f.give(nv)
		return LearnBusy, old
	}
	f.give(v)
	return LearnMoved, old
}

// enter claims a slot for a key that has none.
func (f *FDB) enter(b, c *fdbBucket, key, v uint64) LearnResult {
	if v&fdbStatic == 0 && !f.take(uint16(v>>fdbPortShift)) {
		return LearnFull
	}
	if f.count.Add(1) > f.limit {
		return f.reject(v)
	}
	nb := b.used()
	if nb >= fdbSpill && c.used() < nb {
		b, c = c, b
	}
	slot, at := b.claim(), b
	if slot < 0 {
		slot, at = c.claim(), c
	}
	if slot < 0 {
		return f.reject(v)
	}
	at.key[slot].Store(key)
	at.val[slot].Store(v)
	return f.dedupe(key)
}

func (b *fdbBucket) used() (n int) {
	for i := range b.val {
		if b.val[i].Load() != fdbFree {
			n++
		}
	}
	return n
}

func (b *fdbBucket) claim() int {
	for i := range b.val {
		if b.val[i].Load() == fdbFree && b.val[i].CompareAndSwap(fdbFree, fdbClaimed) {
			return i
		}
	}
	return -1
}

// dedupe frees all live slots of key but the first, and says whether there
// was more than one.
func (f *FDB) dedupe(key uint64) LearnResult {
	b, c := f.pair(key)
	r, found := LearnNew, false
	for _, p := range [2]*fdbBucket{b, c} {
		for i := range p.key {
			if p.key[i].Load() != key {
				continue
			}
			v := p.val[i].Load()
			if v&fdbLive == 0 || p.key[i].Load() != key {
				continue
			}
			if found {
				r = LearnBusy
				f.drop(p, i, v)
			}
			found = true
		}
	}
	return r
}

// drop frees the slot if its value is still v.
func (f *FDB) drop(b *fdbBucket, i int, v uint64) bool {
	if !b.val[i].CompareAndSwap(v, fdbFree) {
		return false
	}
	f.count.Add(-1)
	f.give(v)
	return true
}

// SetStatic makes key a static entry, which is neither moved by learning nor aged, and
// does not count towards its port's share. It replaces a learned entry, and if there is
// no room it evicts one. The result is LearnNew, LearnMoved (there was an entry), or
// LearnFull: static entries alone fill the table, or the sixteen possible slots of this
// one.
func (f *FDB) SetStatic(now frame.Time, key uint64, port uint16) LearnResult {
	nv := fdbValue(port, now) | fdbStatic
	b, c := f.pair(key)
	for {
		p := b
		i, v := b.find(key)
		if i < 0 {
			p = c
			i, v = c.find(key)
		}
		if i >= 0 {
			if p.val[i].CompareAndSwap(v, nv) {
				f.give(v)
				return LearnMoved
			}
			continue // a frame renewed or moved the entry in between
		}
		r := f.enter(b, c, key, nv)
		if r == LearnFull && !f.makeWay(b, c) {
			return r
		}
		// A worker may have learned the address at the same instant, and its
		// slot may have won: look again.
		if i, v := b.find(key); i >= 0 && v&fdbStatic != 0 {
			return LearnNew
		}
		if i, v := c.find(key); i >= 0 && v&fdbStatic != 0 {
			return LearnNew
		}
	}
}

// makeWay evicts a learned entry to make room for one in two buckets: from these, if both
// are full, or from any.
func (f *FDB) makeWay(b, c *fdbBucket) bool {
	if b.used() == len(b.val) && c.used() == len(c.val) {
		return f.dropOldest(b) || f.dropOldest(c)
	}
	for i := range f.buckets {
		if f.dropOldest(&f.buckets[i]) {
			return true
		}
	}
	return false
}

// dropOldest drops the learned entry of a bucket that has not been seen for the longest
// time.
func (f *FDB) dropOldest(b *fdbBucket) bool {
	for {
		oldest, value := -1, uint64(0)
		for i := range b.val {
			v := b.val[i].Load()
			if v&fdbLive != 0 && v&fdbStatic == 0 && (oldest < 0 || v&fdbSeenMask < value&fdbSeenMask) {
				oldest, value = i, v
			}
		}
		if oldest < 0 || f.drop(b, oldest, value) {
			return oldest >= 0
		}
	}
}

// Delete removes key and reports whether it was there.
func (f *FDB) Delete(key uint64) (found bool) {
	b, c := f.pair(key)
	for _, p := range [2]*fdbBucket{b, c} {
		for {
			i, v := p.find(key)
			if i < 0 {
				break
			}
			if f.drop(p, i, v) {
				found = true
			}
		}
	}
	return found
}

// Age removes learned entries that were last seen before now-maxAge. Each call
// looks at up to budget buckets (of eight slots) and the next call goes on
// where it stopped. It returns how many entries it removed. One worker calls
// it.
func (f *FDB) Age(now, maxAge frame.Time, budget int) (removed int) {
	if now < maxAge {
		return 0
	}
	oldest := uint64(now-maxAge) >> fdbTickShift
	for n := min(budget, len(f.buckets)); n > 0; n-- {
		b := &f.buckets[f.cursor&f.mask]
		f.cursor++
		for i := range b.val {
			v := b.val[i].Load()
			if v&fdbLive != 0 && v&fdbStatic == 0 && v&fdbSeenMask < oldest && f.drop(b, i, v) {
				removed++
			}
		}
	}
	return removed
}

// Buckets returns the number of buckets, so that a caller of Age can choose a
// budget that visits all of them in a given time.
func (f *FDB) Buckets() int { return len(f.buckets) }

// FlushPort removes the learned entries of a port, and the static ones too if
// static is set. It returns how many.
func (f *FDB) FlushPort(port uint16, static bool) int {
	return f.flush(uint64(port)<<fdbPortShift, 0xffff<<fdbPortShift, 0, 0, static)
}

// FlushVLAN is FlushPort for the entries of a VLAN.
func (f *FDB) FlushVLAN(vid uint16, static bool) int {
	return f.flush(0, 0, MACKey(vid, 0), 0xfff<<48, static)
}

// Flush removes all learned entries, and the static ones too if static is set.
func (f *FDB) Flush(static bool) int { return f.flush(0, 0, 0, 0, static) }

// flush removes the entries whose value word under vmask equals v and whose
// key under kmask equals k.
func (f *FDB) flush(v, vmask, k, kmask uint64, static bool) (removed int) {
	for n := range f.buckets {
		b := &f.buckets[n]
		for i := range b.val {
			for {
				key := b.key[i].Load()
				w := b.val[i].Load()
				if w&fdbLive == 0 || w&vmask != v || key&kmask != k || w&fdbStatic != 0 && !static {
					break
				}
				if b.key[i].Load() == key && f.drop(b, i, w) {
					removed++
					break
				}
			}
		}
	}
	return removed
}

// Entries calls fn for every entry until it returns false. Entries that come
// or go meanwhile may be missed.
func (f *FDB) Entries(fn func(FDBEntry) bool) {
	for n := range f.buckets {
		b := &f.buckets[n]
		for i := range b.val {
			key := b.key[i].Load()
			v := b.val[i].Load()
			if v&fdbLive == 0 || b.key[i].Load() != key {
				continue
			}
			e := FDBEntry{
				Key:    key,
				Port:   uint16(v >> fdbPortShift),
				Static: v&fdbStatic != 0,
				Seen:   frame.Time(v & fdbSeenMask << fdbTickShift),
			}
			if !fn(e) {
				return
			}
		}
	}
}

// Len returns the number of entries.
func (f *FDB) Len() int { return int(f.count.Load()) }

// Cap returns how many entries fit.
func (f *FDB) Cap() int { return int(f.limit) }

// Rejected returns how many addresses were not entered for lack of room.
func (f *FDB) Rejected() uint64 { return f.rejected.Load() }
