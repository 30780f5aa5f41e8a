package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"gswitch/bench/testbed"
	"gswitch/bench/traffic"
)

// frameFlags are the flags that describe the frame.
type frameFlags struct {
	size                     *int
	dst, src, dstIP, srcAddr *string
}

func newFrameFlags(f *flag.FlagSet) frameFlags {
	return frameFlags{
		size:    f.Int("size", 64, "bytes of a frame, with FCS"),
		dst:     f.String("dst", testbed.SinkMAC, "destination MAC address"),
		src:     f.String("src", testbed.GenMAC, "source MAC address"),
		dstIP:   f.String("dstip", testbed.SinkIP, "destination IPv4 address"),
		srcAddr: f.String("srcip", testbed.GenIP, "source IPv4 address"),
	}
}

func (f frameFlags) frame() (fr traffic.Frame, err error) {
	fr.Size = *f.size
	if fr.Dst, err = net.ParseMAC(*f.dst); err != nil {
		return fr, err
	}
	if fr.Src, err = net.ParseMAC(*f.src); err != nil {
		return fr, err
	}
	if fr.DstIP, err = netip.ParseAddr(*f.dstIP); err != nil {
		return fr, err
	}
	fr.SrcIP, err = netip.ParseAddr(*f.srcAddr)
	return fr, err
}

func genCmd(args []string) error {
	f := flag.NewFlagSet("gbench gen", flag.ExitOnError)
	ff := newFrameFlags(f)
	var g traffic.Generator
	f.StringVar(&g.Device, "device", "", "device to send from; what receives must run NAPI (GRO on, or an XDP program)")
	f.IntVar(&g.Flows, "flows", 1, "UDP source ports, used in turn")
	f.Float64Var(&g.Rate, "rate", 0, "frames/s; 0 = as many as can be")
	f.IntVar(&g.CPU, "cpu", -1, "core to run on; -1 = any")
	seconds := f.Float64("seconds", 0, "end after this time; 0 = on a signal")
	wait := f.Bool("wait", false, "print ready once loaded, and begin at the first line of the input")
	if err := f.Parse(args); err != nil {
		return err
	}
	var err error
	if g.Frame, err = ff.frame(); err != nil {
		return err
	}
	loaded, err := g.Load()
	if err != nil {
		return err
	}
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGINT, syscall.SIGTERM)
	if *wait {
		fmt.Println("ready")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return fmt.Errorf("waiting for the sign to begin: %w", err)
		}
	}
	stop := make(chan struct{})
	go func() {
		if *seconds > 0 {
			select {
			case <-sig:
			case <-time.After(time.Duration(*seconds * float64(time.Second))):
			}
		} else {
			<-sig
		}
		close(stop)
	}()
	sent, err := loaded.Run(stop)
	if err != nil {
		return err
	}
	return printJSON(sent)
}

func pingCmd(args []string) error {
	f := flag.NewFlagSet("gbench ping", flag.ExitOnError)
	ff := newFrameFlags(f)
	var p traffic.Pinger
	f.StringVar(&p.Device, "device", "", "device to send from")
	f.IntVar(&p.Count, "count", 1000, "probes")
	f.DurationVar(&p.Gap, "gap", 500*time.Microsecond, "time between probes")
	f.IntVar(&p.Warmup, "warmup", 100, "probes before those that count")
	f.IntVar(&p.CPU, "cpu", -1, "core to spin on; -1 = any")
	if err := f.Parse(args); err != nil {
		return err
	}
	var err error
	if p.Frame, err = ff.frame(); err != nil {
		return err
	}
	rtt, err := p.Run()
	if err != nil {
		return err
	}
	return printJSON(rtt)
}

func sinkCmd(args []string) error {
	f := flag.NewFlagSet("gbench sink", flag.ExitOnError)
	device := f.String("device", "", "device whose arriving IPv4 frames are counted and dropped")
	if err := f.Parse(args); err != nil {
		return err
	}
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	s, err := traffic.NewSink(h, *device)
	if err != nil {
		return err
	}
	defer s.Close()
	defer traffic.Detach(h, *device)
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGINT, syscall.SIGTERM)
	var last uint64
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-sig:
			return nil
		case <-tick.C:
			n, _, err := s.Count()
			if err != nil {
				return err
			}
			fmt.Printf("%.1f kpps, %d frames\n", float64(n-last)/1e3, n)
			last = n
		}
	}
}

func reflectCmd(args []string) error {
	f := flag.NewFlagSet("gbench reflect", flag.ExitOnError)
	device := f.String("device", "", "device whose arriving IPv4 frames are sent back")
	if err := f.Parse(args); err != nil {
		return err
	}
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	r, err := traffic.NewReflector(h, *device)
	if err != nil {
		return err
	}
	defer r.Close()
	defer traffic.Detach(h, *device)
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGINT, syscall.SIGTERM)
	fmt.Println("ready")
	<-sig
	return nil
}

func printJSON(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }
