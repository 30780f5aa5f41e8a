package ghost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/control/host"
	"gswitch/section"
	"gswitch/table"
	"gswitch/wholefile"
)

// withTransparent lets "ghost run" be a bump in the wire: by --transparent, or
// by a document that says so.
func (a *app) withTransparent(run *cobra.Command) *cobra.Command {
	var on bool
	var inner, flows, queue string
	var mtu int
	f := run.Flags()
	f.BoolVar(&on, "transparent", false, "be a bump in the wire: the host behind --inner keeps its kernel's stack")
	f.StringVar(&inner, "inner", "", "with --transparent: interface that leads to the host's kernel")
	f.StringVar(&flows, "flows", "", "with --transparent: what shares a channel: tuple, host, pass (tuple)")
	f.StringVar(&queue, "queue", "", "with --transparent: bytes that may wait in a channel (two bandwidth-delay products)")
	f.IntVar(&mtu, "mtu", 0, "with --transparent: bytes of an IP packet that the network carries (that of --port)")
	run.Use = strings.Replace(run.Use, "]", " | --transparent --inner IF --port IF]", 1)
	run.Long += `

With --transparent the host behind the interface --inner keeps its kernel's
stack, and --port leads to the network: packets for hosts that have a ghost too
travel in paced channels, all else passes untouched (docs/TRANSPARENT.md).`
	run.Example += `
  ghost run --transparent --inner g0 --port g1 --link-rate 200Mbps \
    --link 200Mbps --base-rtt 2ms
  ghost run -c transparent.yaml`
	other := run.RunE
	run.RunE = func(c *cobra.Command, words []string) error {
		file, _ := c.Flags().GetString("config")
		if !on && !isTransparent(file) {
			for _, name := range []string{"inner", "flows", "queue", "mtu"} {
				if c.Flags().Changed(name) {
					return cli.Usage(fmt.Errorf("--%s goes with --transparent", name))
				}
			}
			return other(c, words)
		}
		doc, err := a.parseTransparent(c, file)
		if err != nil {
			return err
		}
		return a.runTransparent(c, doc, file)
	}
	return run
}

// isTransparent reports whether a document is one of the transparent mode. One that
// cannot be read is not: decoding it will report why.
func isTransparent(file string) bool {
	if file == "" {
		return false
	}
	text, err := wholefile.Read(file, section.MaxDocument)
	return err == nil && describesBumps(text)
}

func describesBumps(text []byte) bool {
	var top struct {
		Transparent yaml.Node `yaml:"transparent"`
	}
	return yaml.Unmarshal(text, &top) == nil && top.Transparent.Kind != 0
}

// transparentFlags are the flags that a document has keys for.
var transparentFlags = [][2]string{{"inner", "inner"}, {"port", "outer"}, {"netns", "netns"}, {"mode", "mode"}, {"link-rate", "rate"}, {"base-rtt", "base_rtt"},
	{"cc", "congestion"}, {"flows", "flows"}, {"queue", "queue"}, {"mtu", "mtu"}}

// transparentOverride puts what flags say of the daemon in place of what a
// document says, now and at each reload.
func (a *app) transparentOverride(c *cobra.Command) func(*config.Transparent) {
	listen, _ := c.Flags().GetString("listen")
	socket := a.socket
	if abs, err := filepath.Abs(socket); socket != "" && err == nil {
		socket = abs
	}
	return func(doc *config.Transparent) {
		doc.Control.Listen = cmp.Or(listen, doc.Control.Listen)
		doc.Control.Socket = cmp.Or(socket, doc.Control.Socket)
	}
}

func (a *app) parseTransparent(c *cobra.Command, file string) (*config.Transparent, error) {
	f := c.Flags()
	if file != "" {
		for _, pair := range transparentFlags {
			if f.Changed(pair[0]) {
				return nil, cli.Usage(fmt.Errorf("--%s does not go with -c: it is said in the file", pair[0]))
			}
		}
		doc, err := config.LoadTransparent(file)
		if err != nil {
			return nil, cli.Input(err)
		}
		return doc, nil
	}
	if !f.Changed("inner") || !f.Changed("port") {
		return nil, cli.Usage(errors.New("a bump needs two interfaces: --inner IF towards the host's kernel, --port IF towards the network, or -c FILE"))
	}
	if f.Changed("addr") || f.Changed("gateway") || f.Changed("payload") || f.Changed("serve") {
		return nil, cli.Usage(errors.New("--addr, --gateway, --payload and --serve do not go with --transparent: addresses are the kernel's"))
	}
	said := map[string]any{}
	for _, pair := range transparentFlags {
		if f.Changed(pair[0]) {
			said[pair[1]] = f.Lookup(pair[0]).Value.String()
		}
	}
	if v, err := f.GetInt("mtu"); err == nil && f.Changed("mtu") {
		said["mtu"] = v
	}
	if a.name != "" {
		said["name"] = a.name
	}
	telemetry := map[string]any{}
	if v, _ := f.GetString("int"); v != "" {
		telemetry["format"] = v
	}
	if v, _ := f.GetStringArray("link"); len(v) > 0 {
		telemetry["links"] = v
	}
	if len(telemetry) > 0 {
		said["telemetry"] = telemetry
	}
	worker := map[string]any{}
	if v, _ := f.GetString("poll"); v != "" {
		worker["poll"] = v
	}
	if v, _ := f.GetInt("cpu"); f.Changed("cpu") {
		worker["cpu"] = v
	}
	text, err := yaml.Marshal(map[string]any{"version": 1, "workers": []any{worker}, "transparent": []any{said}})
	if err != nil {
		return nil, err
	}
	doc, err := config.ParseTransparent("flags", text)
	if err != nil {
		return nil, cli.Input(transparentByFlag(err))
	}
	return doc, nil
}

// transparentByFlag names the flags that errors are about in place of the
// document that was made of them.
func transparentByFlag(err error) error {
	flags := map[string]string{"telemetry.format": "--int", "telemetry.links": "--link", "workers[0].poll": "--poll", "workers[0].cpu": "--cpu"}
	for _, pair := range transparentFlags {
		flags[pair[1]] = "--" + pair[0]
	}
	return section.Rename(err, func(key string) string {
		if !strings.HasPrefix(key, "workers") {
			key, _, _ = strings.Cut(strings.TrimPrefix(key, "transparent[0]."), "[")
		}
		return cmp.Or(flags[key], key)
	})
}

func (a *app) runTransparent(c *cobra.Command, doc *config.Transparent, file string) error {
	level := slog.LevelInfo
	if v, _ := c.Flags().GetBool("verbose"); v {
		level = slog.LevelDebug
	}
	log := control.NewLogger(c.ErrOrStderr(), level)
	opts := host.TransparentOptions{Version: version, Source: cmp.Or(file, "flags"), Logger: log, Override: a.transparentOverride(c)}
	opts.Wait, _ = c.Flags().GetDuration("wait")
	opts.Override(doc)
	parts := make([]string, len(doc.Bumps))
	for i := range doc.Bumps {
		parts[i] = fmt.Sprintf("%s between %s (kernel) and %s (network)", doc.Bumps[i].Name, doc.Bumps[i].Inner, doc.Bumps[i].Outer)
	}
	r := &cli.Run{Log: log, Control: config.Control(doc.Control), File: file}
	r.Open = func(ctx context.Context) (cli.Daemon, error) { return host.NewTransparent(ctx, doc, opts) }
	return r.UntilSignal(c.Context(), &a.keep, c.OutOrStdout(), strings.Join(parts, ", "))
}

// withChannels adds the views of bumps to "ghost show".
func (a *app) withChannels(show *cobra.Command) *cobra.Command {
	show.AddCommand(
		transparentView(a, "channels", "Channels of a bump in the wire", func(ctx context.Context, c api.TransparentClient) (*api.Channels, error) {
			return c.ListChannels(ctx, &api.ListChannelsRequest{Host: a.host})
		}, printChannels),
		transparentView(a, "bumps", "Bumps in the wire: counters, drops, peers", func(ctx context.Context, c api.TransparentClient) (*api.Bumps, error) {
			return c.ListBumps(ctx, &api.ListBumpsRequest{Host: a.host})
		}, printBumps))
	return show
}

// bumps returns the socket of the daemon that was chosen.
func (a *app) bumps() (string, error) {
	switch {
	case a.socket != "":
		return a.socket, nil
	case a.name != "":
		return filepath.Join(config.HostSocketDir, a.name+".sock"), nil
	}
	return control.FindHost(config.HostSocketDir)
}

// withTransparentFiles lets "ghost validate" check documents of bumps too.
func (a *app) withTransparentFiles(validate *cobra.Command) *cobra.Command {
	other := validate.RunE
	validate.RunE = func(c *cobra.Command, words []string) error {
		if !isTransparent(words[0]) {
			return other(c, words)
		}
		doc, err := config.LoadTransparent(words[0])
		if err != nil {
			return cli.Input(err)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: is right: %s in the wire\n", words[0], cli.Plural(len(doc.Bumps), "host"))
		return err
	}
	return validate
}

func transparentView[M proto.Message](a *app, use, short string, ask func(context.Context, api.TransparentClient) (M, error), print func(io.Writer, M)) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cli.Args(cobra.NoArgs), RunE: func(c *cobra.Command, _ []string) error {
		address, err := a.bumps()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
		defer cancel()
		m, err := ask(ctx, control.DialTransparent(address, a.show))
		if err != nil {
			return control.Explain(address, err)
		}
		if a.json {
			return cli.PrintJSON(c.OutOrStdout(), m)
		}
		print(c.OutOrStdout(), m)
		return nil
	}}
}

func printChannels(w io.Writer, m *api.Channels) {
	t := table.Right("HOST", "PROTOCOL", "LOCAL", "REMOTE", "STATE", "CC", "RATE", "WINDOW", "IN FLIGHT", "QUEUE", "SENT", "RECEIVED", "FRAMES", "AGAIN", "DROPS", "MARKS")
	for _, c := range m.Channels {
		t.Rowf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d", c.Host, c.Protocol, end(c.Local, c.LocalPort), end(c.Remote, c.RemotePort), c.State,
			c.Congestion, cli.Rate(c.Rate), size(uint64(c.Window)), size(c.InFlight), size(c.Queue), size(c.TxBytes), size(c.RxBytes), c.TxFrames, c.Retransmitted, c.Drops, c.Marks)
	}
	t.Print(w)
}

// end is an address with its port, as URLs write it.
func end(address string, port uint32) string {
	switch {
	case port == 0:
		return address
	case strings.Contains(address, ":"):
		address = "[" + address + "]"
	}
	return address + ":" + strconv.Itoa(int(port))
}

// place names an interface, with its namespace where that is another one.
func place(iface, netns string) string {
	if netns == "" {
		return iface
	}
	return iface + " in " + netns
}

func printBumps(w io.Writer, m *api.Bumps) {
	for i, b := range m.Bumps {
		if i > 0 {
			fmt.Fprintln(w)
		}
		t := table.New()
		t.Rowf("host\t%s %s", b.Name, b.Mac)
		t.Rowf("inner\t%s, %s, AF_XDP %s", place(b.Inner, b.Netns), b.InnerState, b.InnerMode)
		t.Rowf("outer\t%s, %s, AF_XDP %s", place(b.Outer, b.Netns), b.OuterState, b.OuterMode)
		t.Rowf("link\t%s, MTU %d, T %s", cli.Rate(float64(b.Rate)), b.Mtu, cli.Span(b.BaseRtt))
		t.Rowf("channels\t%d for tuples, %d for hosts; by %s, %s, telemetry %s, recovery %s; packets to %d bytes, queue %s", b.TupleChannels, b.HostChannels,
			b.Flows, b.Congestion, b.Telemetry, b.Recovery, b.Packet, size(b.Queue))
		t.Rowf("from kernel\t%d frames, %s", b.FromKernelFrames, size(b.FromKernelBytes))
		t.Rowf("to fabric\t%d frames, %s", b.ToFabricFrames, size(b.ToFabricBytes))
		t.Rowf("from fabric\t%d frames, %s", b.FromFabricFrames, size(b.FromFabricBytes))
		t.Rowf("to kernel\t%d frames, %s", b.ToKernelFrames, size(b.ToKernelBytes))
		t.Rowf("carried\t%d packets out, %d in; %d sent again, %d timeouts", b.Carried, b.Delivered, b.Retransmissions, b.Timeouts)
		t.Rowf("untouched\t%d frames out, %d in; %d packets overflowed", b.PassedOut, b.PassedIn, b.Overflows)
		t.Rowf("changed\t%d SYNs clamped, %d packets marked, %d ICMP errors to the kernel", b.Clamped, b.Marked, b.TooBigs)
		for _, d := range b.Drops {
			t.Rowf("dropped\t%d %s", d.Frames, d.Reason)
		}
		for _, p := range b.Peers {
			t.Rowf("peer\t%s %s, %d channels", p.Address, p.State, p.Channels)
		}
		t.Rowf("frames late\tp50 %s, p99 %s, max %s", cli.Span(b.FrameLateP50), cli.Span(b.FrameLateP99), cli.Span(b.FrameLateMax))
		for _, s := range b.Warnings {
			t.Rowf("warning\t%s", s)
		}
		t.Print(w)
	}
}
