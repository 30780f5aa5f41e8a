package gfabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/control/cli"
	"gswitch/fabric"
	"gswitch/mirror"
	"gswitch/wire"
)

// probeFlags are those of gfabric probe.
type probeFlags struct {
	fabric, from, to, src, protocol string
	via                             []string
	srcPort, dstPort                uint16
	id                              uint32
	count                           uint32
	every                           time.Duration
}

func probeCommand() *cobra.Command {
	var f probeFlags
	c := &cobra.Command{
		Use:   "probe --via SWITCH[,SWITCH...] --to NODE",
		Short: "Send probes into the network at a switch, to be traced there (Everflow)",
		Long: "probe sends packets in IP in IP from this machine to a switch, which takes the outer header off and\n" +
			"sends what is in it on like any packet that just came; so does each further switch of --via. Switches\n" +
			"do so for those whose address is in watch.probes.from of their documents. Every header asks for a trace,\n" +
			"so that sessions with everflow copy the probe at every hop, whatever they sample:\n" +
			"gfabric why probes says what became of them.\n\n" +
			"--via A,B --to A measures the link between A and B, there and back, by the clock of A alone.\n" +
			"--src, ports and --protocol are those of a flow whose way the probes are to take behind the last switch.\n" +
			"The checksum of TCP or UDP is wrong: a server drops probes silently.",
		Example: "  gfabric probe --fabric leaf-spine:2,3,2 --via spine1,leaf2 --to spine1\n" +
			"  gfabric probe --via 10.192.0.3 --to 10.0.1.2 --protocol tcp --id 2",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := f.probe()
			if err != nil {
				return err
			}
			if err := f.send(c.Context(), p); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "sent %d probes of series %d by %s to %s; gfabric why probes COPIES says what became of them\n", f.count, p.ID, strings.Join(f.via, " "), f.to)
			return err
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.fabric, "fabric", "", "the network that names are of: a file, or a generator such as leaf-spine:2,4,2; addresses need none")
	fl.StringSliceVar(&f.via, "via", nil, fmt.Sprintf("switches that the probes come by, %d at most: names, or addresses of theirs", mirror.MostVia))
	fl.StringVar(&f.to, "to", "", "host or switch at the end")
	fl.StringVar(&f.from, "from", "", "address of this machine that they come from (default: that of the route to the first switch)")
	fl.StringVar(&f.src, "src", "", "source behind the last switch, a name or an address (default: that of --from)")
	fl.StringVar(&f.protocol, "protocol", "udp", "udp or tcp")
	fl.Uint16Var(&f.srcPort, "src-port", 50000, "source port")
	fl.Uint16Var(&f.dstPort, "dst-port", 33434, "destination port")
	fl.Uint32Var(&f.id, "id", 1, "number of the series, by which its copies are known")
	fl.Uint32Var(&f.count, "count", 1000, "how many, 60000 at most")
	fl.DurationVar(&f.every, "every", 2*time.Millisecond, "time between two")
	for _, name := range []string{"via", "to"} {
		_ = c.MarkFlagRequired(name)
	}
	return c
}

// probe is what the flags say.
func (f *probeFlags) probe() (*mirror.Probe, error) {
	if f.count < 1 || f.count > 60000 {
		return nil, usagef("--count %d: 1 to 60000 are possible, each has an identification of its own", f.count)
	}
	var plan *fabric.Plan
	if f.fabric != "" {
		t, err := fabric.Load(f.fabric, fabric.Spec{})
		if err != nil {
			return nil, err
		}
		if plan, err = fabric.NewPlan(t); err != nil {
			return nil, err
		}
	}
	p := &mirror.Probe{ID: f.id, SrcPort: f.srcPort, DstPort: f.dstPort}
	switch f.protocol {
	case "udp":
		p.Proto = wire.ProtoUDP
	case "tcp":
		p.Proto = wire.ProtoTCP
	default:
		return nil, usagef("--protocol %s: there are udp and tcp", f.protocol)
	}
	for _, name := range f.via {
		a, err := nodeAddress(plan, name)
		if err != nil {
			return nil, usagef("--via: %v", err)
		}
		p.Via = append(p.Via, a)
	}
	var err error
	if p.Dst, err = nodeAddress(plan, f.to); err != nil {
		return nil, usagef("--to: %v", err)
	}
	if f.from == "" && len(p.Via) > 0 {
		if p.From, err = towards(p.Via[0]); err != nil {
			return nil, err
		}
	} else if p.From, err = nodeAddress(plan, f.from); err != nil {
		return nil, usagef("--from: %v", err)
	}
	p.Src = p.From
	if f.src != "" {
		if p.Src, err = nodeAddress(plan, f.src); err != nil {
			return nil, usagef("--src: %v", err)
		}
	}
	if err := p.Validate(); err != nil {
		return nil, cli.Usage(err)
	}
	return p, nil
}

// nodeAddress is the address that a name or an address stands for.
func nodeAddress(plan *fabric.Plan, name string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		return a, nil
	}
	if plan == nil {
		return netip.Addr{}, fmt.Errorf("%q is no address; names need --fabric", name)
	}
	i, ok := plan.Topology.Lookup(name)
	if !ok {
		return netip.Addr{}, fmt.Errorf("there is no node %q", name)
	}
	n := &plan.Nodes[i]
	if len(n.Loopback) > 0 {
		return n.Loopback[0], nil
	}
	if len(n.Address) == 0 {
		return netip.Addr{}, fmt.Errorf("%s has no address", name)
	}
	return n.Address[0].Addr(), nil
}

// towards is the address of this machine by which it sends to another.
func towards(to netip.Addr) (netip.Addr, error) {
	c, err := net.Dial("udp", netip.AddrPortFrom(to, 9).String())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%v is not reached from here: %w; say --from", to, err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// send sends the probes.
func (f *probeFlags) send(ctx context.Context, p *mirror.Probe) error {
	// The header of the packet is ours (raw(7), IPPROTO_RAW).
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a raw socket: %w; probes need the capability NET_RAW, as root has it", err)
	}
	if err != nil {
		return fmt.Errorf("a raw socket: %w", err)
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet4{Addr: p.Via[0].As4()}
	tick := time.NewTicker(max(f.every, time.Microsecond))
	defer tick.Stop()
	var b []byte
	for k := range f.count {
		b = p.Append(b[:0], k)
		if err := unix.Sendto(fd, b, 0, to); err != nil {
			return fmt.Errorf("probe %d to %v: %w", k, p.Via[0], err)
		}
		if k+1 == f.count {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
