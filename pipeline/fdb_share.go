package pipeline

import "sync/atomic"

// fdbPort is the account of a port in an FDB. An entry is counted before it is live and
// until after it is gone, so that no port exceeds its share, however many workers learn
// at once.
type fdbPort struct {
	learned  atomic.Int64
	rejected atomic.Uint64
}

// SetShare limits the number of entries that are learned at one port, so that a host with
// ever new addresses leaves room for the stations of other ports. Entries beyond a
// reduced share stay until they age or move.
func (f *FDB) SetShare(n int) { f.share.Store(int64(max(n, 1))) }

// Share returns the largest number of entries that are learned at one port.
func (f *FDB) Share() int { return int(min(f.share.Load(), f.limit)) }

// Learned returns the number of entries that were learned at a port.
func (f *FDB) Learned(port uint16) int { return int(f.ports[port%MaxPorts].learned.Load()) }

// RejectedAt returns how many times an address was not entered for a port, for lack of
// room or because the port has used up its share.
func (f *FDB) RejectedAt(port uint16) uint64 { return f.ports[port%MaxPorts].rejected.Load() }

// take counts one more entry learned at a port, if its share allows that. The
// first look saves the write in a flood of addresses.
func (f *FDB) take(port uint16) bool {
	p, share := &f.ports[port%MaxPorts], f.share.Load()
	if p.learned.Load() < share {
		if p.learned.Add(1) <= share {
			return true
		}
		p.learned.Add(-1)
	}
	p.rejected.Add(1)
	f.rejected.Add(1)
	return false
}

// give is the inverse of take for an entry that had the value v.
func (f *FDB) give(v uint64) {
	if v&fdbStatic == 0 {
		f.ports[v>>fdbPortShift%MaxPorts].learned.Add(-1)
	}
}

// reject undoes the accounting of enter for an entry that found no room.
func (f *FDB) reject(v uint64) LearnResult {
	f.count.Add(-1)
	f.give(v)
	f.ports[v>>fdbPortShift%MaxPorts].rejected.Add(1)
	f.rejected.Add(1)
	return LearnFull
}
