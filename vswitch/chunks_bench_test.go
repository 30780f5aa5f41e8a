package vswitch

import (
	"fmt"
	"testing"
)

// What it costs that admission counts the chunks of memory beside the bytes of
// frames: in a bridge, and where all else is done, too.
func BenchmarkAdmission(b *testing.B) {
	for _, chunks := range []bool{false, true} {
		what := map[bool]string{false: "bytes", true: "chunks"}[chunks]
		b.Run("bridge/"+what, func(b *testing.B) {
			cfg := baseConfig(2)
			cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}}
			cfg.Buffer.Chunks = chunks
			benchPump(b, newPump(b, cfg, flows(1, func(int) string { return "10.0.0.2" }, 2)))
		})
		b.Run("full/"+what, func(b *testing.B) {
			cfg := fullConfig(1000, 1000)
			cfg.Buffer.Chunks = chunks
			benchPump(b, newPump(b, cfg, flows(1000, func(i int) string { return fmt.Sprintf("20.0.%d.7", i&255) }, 0)))
		})
	}
}
