package dataplane

import (
	"runtime"

	"github.com/safchain/ethtool"
)

// OpenEthtool opens ethtool's socket and makes sure that the stack is large enough for
// its calls. The ethtool package passes addresses of stack variables to the kernel as
// plain numbers. If the stack grows, and therefore moves, during a call, the answer is
// lost, and the interface seems to have no features.
func OpenEthtool() (*ethtool.Ethtool, error) {
	growStack()
	return ethtool.NewEthtool()
}

// Channels returns the number of receive queues of an interface of this network
// namespace, as its driver reports it, or 1 if the driver does not say.
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
