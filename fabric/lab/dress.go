package lab

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"gswitch/fabric"
)

// Dress makes an interface of the caller's network namespace one end of a wire, as
// RaiseWires does: frames that leave it are finished, and the kernel sends none of
// its own. It waits for an interface that is not there yet until ctx ends.
func Dress(ctx context.Context, iface string) error {
	for {
		_, err := netlink.LinkByName(iface)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interface %s: %w", iface, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	// A container's engine may have said so already, and let nobody else write there.
	key := "net/ipv6/conf/" + iface + "/disable_ipv6"
	if now, err := os.ReadFile("/proc/sys/" + key); err != nil || strings.TrimSpace(string(now)) != "1" {
		if err := setSysctls(map[string]string{key: "1"}); err != nil {
			return err
		}
	}
	return finish(iface, false, &fabric.Link{})
}
