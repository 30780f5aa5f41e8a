// Package xsktest has what tests need of the kernel's network.
package xsktest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/vishvananda/netns"

	"gswitch/dataplane/xsk"
)

// NetNS makes a named network namespace for the time of a test, which may delete it before.
func NetNS(t testing.TB, name string) {
	t.Helper()
	// In a thread of its own, which the call leaves in the new namespace.
	err := xsk.InNetNS("/proc/self/ns/net", func() error {
		h, err := netns.NewNamed(name)
		if err != nil {
			return err
		}
		return h.Close()
	})
	if err != nil {
		t.Fatalf("network namespace %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := netns.DeleteNamed(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("network namespace %s: %v", name, err)
		}
	})
}
