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

// Channels asks the driver of an interface of this network namespace on how
// many queues frames may arrive. One that does not know has one.
func Channels(name string) int {
	e, err := OpenEthtool()
	if err != nil {
		return 1
	}
	defer e.Close()
	c, err := e.GetChannels(name)
	if err != nil {
		return 1
	}
	return max(1, int(c.RxCount+c.CombinedCount))
}

// growStack makes the stack long enough for whatever the caller calls next.
//
//go:noinline
func growStack() {
	var room [64 << 10]byte
	runtime.KeepAlive(&room)
}
