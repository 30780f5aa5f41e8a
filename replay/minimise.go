package replay

// Minimise returns a smallest subset of n inputs that still shows an event, by their
// numbers: shows reports a subset, in ascending order, whether it does. None of those
// returned can be left out alone (ddmin: Zeller and Hildebrandt, "Simplifying and
// Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002). All inputs together must show
// it. With an error of shows it returns the smallest subset so far and that error.
func Minimise(n int, shows func(kept []int) (bool, error)) ([]int, error) {
	kept := make([]int, n)
	for i := range kept {
		kept[i] = i
	}
	if ok, err := shows(nil); ok || err != nil {
		if ok {
			kept = nil
		}
		return kept, err
	}
	for parts := 2; len(kept) > 1; {
		smaller, now, err := reduce(kept, parts, shows)
		switch {
		case err != nil:
			return kept, err
		case smaller != nil:
			kept, parts = smaller, max(2, min(now, len(smaller)))
		case parts == len(kept):
			return kept, nil
		default:
			parts = min(2*parts, len(kept))
		}
	}
	return kept, nil
}

// reduce cuts kept into parts and returns the first part that shows the event alone, else
// all without the first part that is not needed, with the number of parts to go on with.
// It returns nil if there is neither.
func reduce(kept []int, parts int, shows func([]int) (bool, error)) (smaller []int, next int, err error) {
	cut := func(i int) (from, to int) { return i * len(kept) / parts, (i + 1) * len(kept) / parts }
	for i := range parts {
		from, to := cut(i)
		if ok, err := shows(kept[from:to:to]); ok || err != nil {
			return kept[from:to:to], 2, err
		}
	}
	for i := range parts {
		if parts == 2 {
			break // the rest is the other part
		}
		from, to := cut(i)
		rest := append(append(make([]int, 0, len(kept)), kept[:from]...), kept[to:]...)
		if ok, err := shows(rest); ok || err != nil {
			return rest, parts - 1, err
		}
	}
	return nil, 0, nil
}
