package frame

import (
	"testing"
	"unsafe"
)

// The layout is part of the performance: one line on the way in, one on the
// way out.
func TestMetaIsTwoCacheLines(t *testing.T) {
	if s := unsafe.Sizeof(Meta{}); s != 128 {
		t.Errorf("Meta takes %d bytes, want 128", s)
	}
	if o := unsafe.Offsetof(Meta{}.QNext); o != 64 {
		t.Errorf("queueing fields start at byte %d, want 64", o)
	}
}
