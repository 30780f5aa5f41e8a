package rocc_test

import (
	"testing"

	"gswitch/notice"
	"gswitch/rocc"
)

// A notice of any of eight queues is read, quote or none.
func TestNoticeOfEachClass(t *testing.T) {
	for class := range uint8(9) {
		in := rocc.Notice{Class: class, Fair: 7, Unit: 1000}
		b := make([]byte, rocc.NoticeLen)
		in.Encode(b, notice.Type4, nil)
		var out rocc.Notice
		_, err := out.Decode(b, notice.Type4)
		if class < 8 && (err != nil || out != in) {
			t.Errorf("class %d: %+v, %v", class, out, err)
		}
		if class == 8 && err == nil {
			t.Error("there is no class 8")
		}
	}
}
