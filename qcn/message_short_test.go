package qcn_test

import (
	"testing"

	"gswitch/notice"
	"gswitch/qcn"
)

// A message that quotes nothing is whole, and one that lacks a byte is not.
func TestMessageWithoutQuote(t *testing.T) {
	in := qcn.Message{Feedback: 9, Point: 5, Offset: -3, Delta: 4, Priority: 3}
	b := make([]byte, qcn.MessageLen)
	in.Encode(b, notice.Type4, nil)
	var out qcn.Message
	if quote, err := out.Decode(b, notice.Type4); err != nil || out != in || len(quote) != 0 {
		t.Errorf("%+v, %v, %d bytes are quoted", out, err, len(quote))
	}
	if _, err := out.Decode(b[:len(b)-1], notice.Type4); err != qcn.ErrShort {
		t.Errorf("a byte less: %v", err)
	}
}
