package feature

// Reporter is the state of a feature of a node (Instance.State) that makes reports.
type Reporter interface {
	// TakeReport appends the body of the oldest report that is ready to b, and gives
	// the report back to the node. It returns false if there is none. One goroutine
	// calls it, while the node runs.
	TakeReport(b []byte) ([]byte, bool)
}

// TakeReports calls taken, if it is not nil, with the body of each report that is ready, the
// oldest first. It needs memory, b, which it returns: a body is valid during the call alone.
func TakeReports(r Reporter, b []byte, taken func(body []byte)) []byte {
	for {
		var ok bool
		if b, ok = r.TakeReport(b[:0]); !ok {
			return b
		}
		if taken != nil {
			taken(b)
		}
	}
}
