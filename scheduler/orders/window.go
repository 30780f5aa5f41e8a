package orders

// window keeps the ranks of frames that came last, of which one in so many
// is looked at.
type window struct {
	rank   []int64
	n, at  int
	sample int
	skip   int
}

func newWindow(size, sample int) window {
	return window{rank: make([]int64, max(size, 1)), sample: max(sample, 1)}
}

// see enters a rank, if it is its turn.
func (w *window) see(rank int64) {
	if w.skip++; w.skip < w.sample {
		return
	}
	w.skip = 0
	w.rank[w.at] = rank
	if w.at++; w.at == len(w.rank) {
		w.at = 0
	}
	w.n = min(w.n+1, len(w.rank))
}

// below returns how many of the kept ranks are below one.
func (w *window) below(rank int64) int {
	k := 0
	for _, v := range w.rank[:w.n] {
		if v < rank {
			k++
		}
	}
	return k
}

// fits reports whether the share of ranks below one is at most that of the free
// room among all, stretched by a headroom of k thousandths: quantile <= free /
// (size * (1-k)).
func (w *window) fits(rank int64, free, size, k int) bool {
	return w.below(rank)*size*(1000-k) <= free*w.n*1000
}
