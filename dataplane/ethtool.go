package dataplane

import (
	"runtime"

	"github.com/safchain/ethtool"
)

// OpenEthtool returns ethtool's socket, with stack for its calls. The package
// hands the kernel addresses of variables on the stack as plain numbers: where
// the stack grows on the way, and moves, the answer is lost, and a call reads
// that the interface has no features.
func OpenEthtool() (*ethtool.Ethtool, error) {
	growStack()
	return ethtool.NewEthtool()
}

// growStack makes the stack long enough for whatever the caller calls next.
//
//go:noinline
func growStack() {
	var room [64 << 10]byte
	runtime.KeepAlive(&room)
}
