package dataplane

import "testing"

// Features are read whatever the depth of the stack: at some, ethtool's own
// frames would make it grow.
func TestEthtoolAtAnyDepth(t *testing.T) {
	empty := 0
	for depth := range 1500 {
		done := make(chan int)
		go func() { done <- deep(t, depth) }()
		if <-done == 0 {
			empty++
		}
	}
	if empty > 0 {
		t.Errorf("lo has no features at %d of 1500 depths", empty)
	}
}

//go:noinline
func deep(t *testing.T, n int) int {
	if n > 0 {
		var pad [16]byte
		pad[n&15] = byte(n)
		return deep(t, n-1) + int(pad[(n+1)&15])
	}
	et, err := OpenEthtool()
	if err != nil {
		t.Error(err)
		return 0
	}
	defer et.Close()
	features, err := et.Features("lo")
	if err != nil {
		t.Error(err)
	}
	return len(features)
}
