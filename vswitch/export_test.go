package vswitch

// What external tests share with those of the package.

// FanConfig is fanConfig.
var FanConfig = fanConfig

// Held returns how many frames count as held by the worker.
func (n *Node) Held() int { return n.chunks.held }
