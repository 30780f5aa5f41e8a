package dataplane

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
)

// Carries returns what this machine would lose if a port took over an interface, in words
// that follow "it", or "" if nothing is known. It looks for the loopback interface,
// default routes and, in the process's own namespace, the route to the peer of the SSH
// session from which the process was started.
func Carries(netns, name string) (string, error) {
	client := ""
	if netns == "" {
		client = sshClient("/proc", os.Getpid())
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
		return "is the loopback, by which programs of this machine reach each other", nil
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

// sshClient returns the address of the peer of the SSH session in which a process was
// started, or "". sshd passes it to the shell in SSH_CONNECTION (sshd(8)), but sudo
// removes that from the environment, so the parents of the process are searched, too.
func sshClient(proc string, pid int) string {
	for range mostParents {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ")) // only root may read those of other users' processes
		for v := range bytes.SplitSeq(environ, []byte{0}) {
			if value, ok := bytes.CutPrefix(v, []byte("SSH_CONNECTION=")); ok {
				client, _, _ := strings.Cut(string(value), " ")
				return client
			}
		}
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		// proc(5): pid (name) state ppid. A name may contain parentheses and spaces.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			return ""
		}
		parent, err := strconv.Atoi(string(fields[1]))
		if err != nil || parent < 1 {
			return ""
		}
		pid = parent
	}
	return ""
}

// mostParents bounds the number of processes searched.
const mostParents = 64

// defaultBy reports whether a route is a default route over an interface, and describes
// its gateway.
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
