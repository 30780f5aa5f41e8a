package buffer

// Snapshot is the state of the buffer for display, in bytes.
type Snapshot struct {
	Totals
	Size, Held       uint64
	Shared, InShared uint64 // the shared pool: its size and its use
	Chunks, InChunks uint64 // memory: chunks that may hold waiting frames, and those that do; 0 if they are not counted
	Ports            []PortSnapshot
}

// PortSnapshot is the state of one port.
type PortSnapshot struct {
	Want   uint8 // classes paused at the neighbour
	Groups [8]GroupSnapshot
	Queues [8]QueueSnapshot
}

// GroupSnapshot is the state of one class of an ingress port.
type GroupSnapshot struct {
	Reserved, Shared, Headroom uint64 // in use
	HeadroomSize               uint64
	Threshold                  uint64 // of Shared, as of now; the largest number if there is none
	Lossless                   bool
	Peak, HeadroomPeak         uint64 // highest of Reserved+Shared+Headroom, of Headroom
	XOFFs                      uint64 // times that the group started to want a pause
	Drops                      uint64 // frames refused
}

// QueueSnapshot is the state of one queue of an egress port.
type QueueSnapshot struct {
	Reserved, Beyond uint64 // in use: of the reserve, and beyond it
	Threshold        uint64 // of Beyond, at present
	Peak             uint64
	Drops            uint64
}

// Snapshot writes the state into s, whose memory it reuses. The ports are the configured
// ones. clearPeaks resets the peaks.
func (b *Buffer) Snapshot(s *Snapshot, clearPeaks bool) {
	ports := s.Ports[:0]
	*s = Snapshot{Totals: b.total, Size: b.size, Held: b.held, Shared: b.shared, InShared: b.used}
	s.Chunks, s.InChunks = uint64(b.cfg.Chunks.All), b.spare
	for _, k := range b.waiting {
		s.InChunks += k
	}
	free := b.free()
	for row := 1; row <= len(b.cfg.Ports); row++ {
		ps := PortSnapshot{Want: b.want[row]}
		for i := range ps.Groups {
			g, q := &b.groups[row][i], &b.queues[row][i]
			ps.Groups[i] = GroupSnapshot{
				Reserved: g.reserved, Shared: g.shared, Headroom: g.headroom, HeadroomSize: g.room,
				Threshold: g.limit.at(free), Lossless: g.lossless,
				Peak: g.peak, HeadroomPeak: g.roomPeak, XOFFs: g.xoffs, Drops: g.drops,
			}
			ps.Queues[i] = QueueSnapshot{
				Reserved: q.reserved, Beyond: q.beyond, Threshold: q.limit.at(free), Peak: q.peak, Drops: q.drops,
			}
			if clearPeaks {
				g.peak, g.roomPeak = g.reserved+g.shared+g.headroom, g.headroom
				q.peak = q.reserved + q.beyond
			}
		}
		ports = append(ports, ps)
	}
	s.Ports = ports
}
