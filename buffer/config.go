package buffer

import (
	"math"
)

// Config divides a buffer among ports. The zero value of a Group or Queue is lossy,
// without a reserve, and limited by the shared pool only.
type Config struct {
	Size uint64 // bytes
	Cell uint32 // a frame is charged in whole cells of this many bytes; 0 or 1 = exactly
	// Chunks are counted in addition to bytes if frames are stored in chunks. Their size
	// cannot change.
	Chunks Chunks
	// OwnFrames judges a lossless group when frames of its own come and go alone, though
	// others move its threshold: there is nothing to sweep.
	OwnFrames bool
	Ports     []PortConfig
}

// PortConfig is the share of one port: its groups at ingress and its queues at egress.
type PortConfig struct {
	Link   Link // required if a group is lossless
	Groups [8]Group
	Queues [8]Queue
}

// Group configures one class of an ingress port.
type Group struct {
	Reserve  uint64
	Lossless bool
	// Limit bounds the shared bytes of the group: it is the XOFF threshold of a lossless
	// group and the drop threshold of a lossy one.
	Limit Threshold
	// XONOffset is how far below Limit the group must fall before XON.
	XONOffset uint64
	// Headroom of a lossless group; 0 computes it from Link. NoHeadroomCheck accepts less
	// than the link needs, for experiments that want loss.
	Headroom        uint64
	NoHeadroomCheck bool
	// Stages, if not 0, is the last stage to which the neighbour of a lossless group is
	// slowed instead of being paused (Gentle Flow Control; see Buffer.Stages). Limit must
	// then be in Bytes: the first threshold B1. Span is Bm-B1; 0 means the least that is
	// safe, 2*C*tau. It comes before the headroom.
	Stages uint8
	Span   uint64
}

// Queue configures one queue of an egress port.
type Queue struct {
	Reserve uint64
	// Limit bounds what the queue holds beyond its reserve. It never drops a lossless
	// frame.
	Limit Threshold
}

// Threshold is a bound on bytes of the shared pool: Bytes, if not 0; Alpha times the free
// bytes of the pool, if not 0; the smaller one if both are set; none if neither is.
type Threshold struct {
	Bytes uint64
	Alpha float64
}

// AlphaForShare returns the alpha with which a single user of an otherwise
// empty pool may take the given share of it (0 < share < 1): the fixed point
// of q = alpha * (1 - q). An alpha of 0.11, "11 % of the free bytes", lets it
// take 0.099; AlphaForShare(0.11) = 0.1236 lets it take 0.11.
func AlphaForShare(share float64) float64 { return share / (1 - share) }

// maxAlpha bounds alpha: beyond it a threshold has no effect.
const maxAlpha = 1024

// alphaShift is the binary point of an alpha in the hot path.
const alphaShift = 20

// limit is a Threshold in the form that the hot path uses.
type limit struct {
	bytes uint64 // largest value: none
	alpha uint64 // 0: none
}

func newLimit(t Threshold) limit {
	l := limit{bytes: t.Bytes, alpha: uint64(math.Round(t.Alpha * (1 << alphaShift)))}
	if t.Bytes == 0 {
		l.bytes = math.MaxUint64
	}
	if t.Alpha > 0 && l.alpha == 0 {
		l.alpha = 1
	}
	return l
}

// at returns the threshold if free bytes of the pool are free.
func (l limit) at(free uint64) uint64 {
	if l.alpha == 0 {
		return l.bytes
	}
	return min(l.bytes, free*l.alpha>>alphaShift)
}

// maxSize keeps free*alpha within 64 bits: 16 GiB.
const maxSize = 1 << 34
