package dataplane

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
)

// Carries tells what this machine would lose if a port took an interface over,
// in words that follow "it": "" if nothing is known. Looked for are loopback,
// default routes and, in the namespace of the process, the way to whom the
// session of SSH is with that started it (sshd(8), SSH_CONNECTION).
func Carries(netns, name string) (string, error) {
	client := ""
	if netns == "" {
		client, _, _ = strings.Cut(os.Getenv("SSH_CONNECTION"), " ")
	}
	what := ""
	err := xsk.InNetNS(netns, func() (err error) {
		what, err = carries(name, net.ParseIP(client))
		return err
	})
	return what, err
}

func carries(name string, client net.IP) (string, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return "", err
	}
	at := link.Attrs()
	if at.RawFlags&unix.IFF_LOOPBACK != 0 {
		return "is the loopback, by which programs of this machine talk to each other", nil
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return "", fmt.Errorf("routes: %w", err)
	}
	for i := range routes {
		if gateway, ok := defaultBy(&routes[i], at.Index); ok {
			return "carries the default route" + gateway, nil
		}
	}
	if client != nil {
		ways, err := netlink.RouteGet(client)
		if err == nil && len(ways) > 0 && ways[0].LinkIndex == at.Index {
			return fmt.Sprintf("carries the SSH session from %s that this is started in", client), nil
		}
	}
	return "", nil
}

// defaultBy reports whether a route is a default route over an interface, and
// names its gateway.
func defaultBy(r *netlink.Route, index int) (string, bool) {
	if r.Dst != nil {
		if ones, _ := r.Dst.Mask.Size(); ones > 0 {
			return "", false
		}
	}
	via := func(gateway net.IP) string {
		if gateway == nil {
			return ""
		}
		return " via " + gateway.String()
	}
	if r.LinkIndex == index {
		return via(r.Gw), true
	}
	for _, hop := range r.MultiPath {
		if hop.LinkIndex == index {
			return via(hop.Gw), true
		}
	}
	return "", false
}
