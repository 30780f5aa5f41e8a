package gcollect

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/collect"
	"gswitch/config"
	"gswitch/control/cli"
	"gswitch/table"
	"gswitch/telemetry/lossradar"
)

func (a *app) suspectsCommand() *cobra.Command {
	var since, cause string
	c := &cobra.Command{
		Use:   "suspects DOCUMENT",
		Short: "Find the rule of an access list in which one wrong bit explains lost packets",
		Long: `suspects compares the packets that links to a switch lost with the access lists in its
document, which let them pass: a rule is suspected if it would drop all lost packets of
a link with one bit of it wrong, as memory that is damaged has it (LossRadar). It looks at
losses that are a blackhole, or of another --cause, and that the lists do not deny, and
at rules for IPv4 addresses, protocols and ports; rules that need anything else are left
out, and counted.`,
		Example: `  gcollect suspects switch.yaml --since 10m
  gcollect suspects switch.yaml --json`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			by, err := (&chosen{kinds: []string{collect.Loss}, since: since}).filter(time.Now())
			if err != nil {
				return err
			}
			if !slices.Contains(lossradar.Causes(), cause) {
				return cli.Usage(fmt.Errorf("--cause %q: there are %s", cause, strings.Join(lossradar.Causes(), ", ")))
			}
			doc, err := config.Load(args[0])
			if err != nil {
				return err
			}
			lost := map[string][]lossradar.Tuple{}
			err = a.each(c, by, func(e *collect.Event) error {
				if t, ok := tupleOf(e, cause); ok && !slices.Contains(lost[e.Where], t) {
					lost[e.Where] = append(lost[e.Where], t)
				}
				return nil
			})
			if err != nil {
				return err
			}
			found, left := suspects(doc, lost)
			if a.json {
				return printJSON(c.OutOrStdout(), found)
			}
			printSuspects(c.OutOrStdout(), found, left, len(lost))
			return nil
		},
	}
	c.Flags().StringVar(&cause, "cause", lossradar.Blackhole.String(), "only losses of this cause")
	c.Flags().StringVar(&since, "since", "", "only what was found since then: 10m, 24h, or 2006-01-02T15:04:05Z")
	return c
}

// tupleOf is the flow of a loss of a cause.
func tupleOf(e *collect.Event, cause string) (t lossradar.Tuple, ok bool) {
	if e.What != cause || !e.Src.Is4() || !e.Dst.Is4() {
		return t, false
	}
	return tuple(e.Src, e.Dst, e.SrcPort, e.DstPort, e.Protocol), true
}

func tuple(src, dst netip.Addr, srcPort, dstPort uint16, proto uint8) lossradar.Tuple {
	a, b := src.As4(), dst.As4()
	return lossradar.Tuple{Addrs: uint64(binary.BigEndian.Uint32(a[:]))<<32 | uint64(binary.BigEndian.Uint32(b[:])),
		Rest: uint64(srcPort)<<24 | uint64(dstPort)<<8 | uint64(proto)}
}

// suspect is a rule that may be wrong in a switch.
type suspect struct {
	Link   string `json:"link"`
	Switch string `json:"switch"`
	List   string `json:"list"`
	Seq    int    `json:"seq"`
	Rule   string `json:"rule"`
	Wrong  string `json:"wrong"` // match or action
	Flows  int    `json:"flows"` // that were lost
}

// suspects looks for rules that explain what links lost, and says how many rules it
// left out.
func suspects(doc *config.Config, lost map[string][]lossradar.Tuple) (found []suspect, left int) {
	for i := range doc.Switches {
		sw := &doc.Switches[i]
		for _, link := range slices.Sorted(maps.Keys(lost)) {
			from, to, _ := strings.Cut(link, ">")
			if to != sw.Name {
				continue
			}
			for _, name := range listsOf(sw, from) {
				list, at, out := ternary(sw.ACLs[name])
				left += out
				unmeant := slices.DeleteFunc(slices.Clone(lost[link]), func(p lossradar.Tuple) bool { return lossradar.Denies(list, p) })
				var named []suspect
				for _, s := range lossradar.SuspectRules(list, unmeant) {
					r := &sw.ACLs[name][at[s.Rule]]
					x := suspect{Link: link, Switch: sw.Name, List: name, Seq: r.Seq, Rule: cmp.Or(r.Name, r.String()), Wrong: "action", Flows: len(unmeant)}
					if s.Match {
						x.Wrong = "match"
					}
					if !slices.Contains(named, x) { // a range of ports is several entries
						named = append(named, x)
					}
				}
				found = append(found, named...)
			}
		}
	}
	return found, left
}

// listsOf are the access lists that frames from a neighbour pass: that of the port with
// its name, or, where none has it, of all ports.
func listsOf(sw *config.Switch, from string) (v []string) {
	named := slices.ContainsFunc(sw.Ports, func(p config.Port) bool { return p.Name == from })
	for i := range sw.Ports {
		p := &sw.Ports[i]
		if p.ACL != "" && (p.Name == from || !named) && !slices.Contains(v, p.ACL) {
			v = append(v, p.ACL)
		}
	}
	return v
}

// ternary returns rules as a list of values and masks, from which rule each is, and how
// many rules it has no form for.
func ternary(rules []config.Rule) (v []lossradar.ACLRule, at []int, left int) {
	for i := range rules {
		r := &rules[i]
		m := r.Match
		m.Src, m.Dst, m.Protocol, m.SrcPort, m.DstPort = netip.Prefix{}, netip.Prefix{}, 0, config.PortRange{}, config.PortRange{}
		if m != (config.Match{}) || r.Match.Src.IsValid() && !r.Match.Src.Addr().Is4() || r.Match.Dst.IsValid() && !r.Match.Dst.Addr().Is4() {
			left++
			continue
		}
		for _, src := range blocks(r.Match.SrcPort) {
			for _, dst := range blocks(r.Match.DstPort) {
				a := lossradar.ACLRule{Deny: r.Action == "drop"}
				proto := uint8(0)
				if r.Match.Protocol != 0 {
					proto = 0xff
				}
				mask := func(p netip.Prefix) (netip.Addr, netip.Addr) {
					if !p.IsValid() {
						return netip.IPv4Unspecified(), netip.IPv4Unspecified()
					}
					return p.Masked().Addr(), netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(^uint64(0)<<(32-p.Bits())))))
				}
				s, sm := mask(r.Match.Src)
				d, dm := mask(r.Match.Dst)
				a.Value = tuple(s, d, src.first, dst.first, uint8(r.Match.Protocol))
				a.Mask = tuple(sm, dm, src.mask, dst.mask, proto)
				v, at = append(v, a), append(at, i)
			}
		}
	}
	return v, at, left
}

// block is an aligned range of ports, as ternary memory has it.
type block struct{ first, mask uint16 }

// blocks divides a range of ports into aligned ones.
func blocks(r config.PortRange) (v []block) {
	if r == (config.PortRange{}) {
		return []block{{}}
	}
	for lo, hi := uint32(r.Lo), uint32(r.Hi); lo <= hi; {
		size := uint32(1) << bits.TrailingZeros32(lo|1<<16)
		for size > hi-lo+1 {
			size /= 2
		}
		v = append(v, block{uint16(lo), uint16(^(size - 1))})
		lo += size
	}
	return v
}

func printSuspects(w io.Writer, found []suspect, left, links int) {
	switch {
	case links == 0:
		fmt.Fprintln(w, "no link lost packets of this cause")
		return
	case len(found) == 0:
		fmt.Fprintln(w, "no rule explains what was lost with one bit of it wrong")
	default:
		t := table.New("LINK", "LIST", ">SEQ", "RULE", "WRONG", ">FLOWS LOST")
		for _, s := range found {
			t.Row(s.Link, s.List, strconv.Itoa(s.Seq), s.Rule, "a bit of its "+s.Wrong, s.Flows)
		}
		t.Print(w)
	}
	if left > 0 {
		fmt.Fprintf(w, "%s looked at more than addresses of IPv4, protocol and ports, and were left out\n", cli.Plural(left, "rule"))
	}
}
