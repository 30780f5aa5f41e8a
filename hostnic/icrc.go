package hostnic

import "github.com/gswitch/gswitch/frame"

func sealICRC(b []byte)                   {}
func icrcOK(m *frame.Meta, b []byte) bool { return true }
