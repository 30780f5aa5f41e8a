package gfabric

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/buffer"
	"gswitch/control/cli"
	crossbar "gswitch/crossbar/point"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/units"
)

// headroomFlags describe a link and the buffer behind it.
type headroomFlags struct {
	queues, rate, cable, delay, response string
	frame, buffer, cell, batch           string
	mtu, classes, ports                  int
}

func headroomCommand() *cobra.Command {
	var f headroomFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "headroom",
		Short: "Work out headroom and pause thresholds that lose nothing",
		Long: "headroom says what still arrives after a port asked its neighbour to pause, term\n" +
			"by term, and what follows for the buffer. It is the arithmetic by which switches\n" +
			"size headroom themselves and by which unsafe thresholds are refused.\n\n" +
			"--queues shared: a buffer that ports share, with headroom for each lossless class of\n" +
			"each port (switch.buffer of scenarios, buffer.lossless of switches).\n" +
			"--queues input: each port has a buffer of its own for what arrives, where only\n" +
			"thresholds in drain bytes keep the classes apart (switch.crossbar, DeTail). --batch\n" +
			"is what a ring below a software switch's queues sends at once; add to --response\n" +
			"how late its loop may be.",
		Example: "  gfabric headroom --rate 100Gbps --cable 300m --response 1us --classes 2 \\\n" +
			"    --ports 32 --buffer 32MiB\n" +
			"  gfabric headroom --rate 25Gbps --cable 10m --mtu 9000 --cell 208B --json\n" +
			"  gfabric headroom --queues input --rate 1Gbps --delay 5476ns \\\n" +
			"    --frame 1530B --response 1024ns --classes 8 --buffer 128KiB\n" +
			"  gfabric headroom --queues input --rate 1Gbps --delay 5476ns \\\n" +
			"    --frame 1530B --response 1024ns --classes 2 --buffer 128KiB --batch 6KiB",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			r, err := f.calculate()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(r)
			}
			return r.write(&stdout)
		},
	}
	c.Flags().StringVar(&f.queues, "queues", "shared", "where frames wait: shared or input")
	c.Flags().StringVar(&f.rate, "rate", "100Gbps", "rate of the link")
	c.Flags().StringVar(&f.cable, "cable", "100m", "length of the cable, at 5 ns for a metre")
	c.Flags().StringVar(&f.delay, "delay", "", "delay of one way, transceivers included, in place of the cable")
	c.Flags().StringVar(&f.response, "response", "50us", "how long both ends take to act on a pause, beyond cable and frames")
	c.Flags().IntVar(&f.mtu, "mtu", 1500, "largest network packet; with 18 bytes of Ethernet header and tag, and 24 beside the frame on the link")
	c.Flags().StringVar(&f.frame, "frame", "", "largest frame with all that it takes on the link, in place of the MTU")
	c.Flags().IntVar(&f.classes, "classes", 1, "lossless classes, 1 to 8")
	c.Flags().IntVar(&f.ports, "ports", 1, "ports with such a link that share the buffer")
	c.Flags().StringVar(&f.buffer, "buffer", "", "buffer: of all ports (12MiB if left out), or of one port's input (128KiB)")
	c.Flags().StringVar(&f.cell, "cell", "", "shared: memory is given out in cells of this size; to the byte if left out")
	c.Flags().StringVar(&f.batch, "batch", "", "input: bytes that are sent at once; a frame if left out")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// Sources of the terms.
const (
	annexN       = "IEEE 802.1Q annex N"
	detailReport = "DeTail, EECS-2012-33"
)

// line is a term or a result.
type line struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	Formula string `json:"formula"`
	Source  string `json:"source,omitempty"`
	Result  bool   `json:"result,omitempty"`
}

// calculation is what headroom prints.
type calculation struct {
	Queues   string `json:"queues"`
	Rate     uint64 `json:"rate_bps"`
	Delay    int64  `json:"delay_ns"`
	Response int64  `json:"response_ns"`
	Frame    uint64 `json:"frame_bytes"` // on the link
	Classes  int    `json:"classes"`
	Ports    int    `json:"ports,omitempty"`
	Buffer   uint64 `json:"buffer_bytes"`
	Batch    uint64 `json:"batch_bytes,omitempty"`
	Cell     uint64 `json:"cell_bytes,omitempty"`
	Lines    []line `json:"lines"`
	// Set is what to write in a scenario, Switch in the document of a switch.
	Set    []string `json:"set"`
	Switch []string `json:"switch"`
	Notes  []string `json:"notes,omitempty"`
}

func (r *calculation) term(bytes uint64, source, name, format string, args ...any) {
	r.Lines = append(r.Lines, line{Name: name, Bytes: int64(bytes), Formula: fmt.Sprintf(format, args...), Source: source})
}

func (r *calculation) result(bytes int64, source, name, format string, args ...any) {
	r.Lines = append(r.Lines, line{Name: name, Bytes: bytes, Formula: fmt.Sprintf(format, args...), Source: source, Result: true})
}

// calculate does the arithmetic.
func (f *headroomFlags) calculate() (*calculation, error) {
	r := &calculation{Queues: f.queues, Classes: f.classes}
	if f.queues != "shared" && f.queues != "input" {
		return nil, usagef("--queues: %q is neither shared nor input", f.queues)
	}
	if f.classes < 1 || f.classes > 8 {
		return nil, usagef("--classes: %d is not from 1 to 8", f.classes)
	}
	link, err := f.link()
	if err != nil {
		return nil, err
	}
	r.Rate, r.Delay, r.Response, r.Frame = link.Rate, int64(link.Delay), int64(link.Response), uint64(link.MaxFrame+link.Overhead)
	if f.queues == "input" {
		return r, f.input(r, link)
	}
	return r, f.shared(r, link)
}

func (f *headroomFlags) link() (buffer.Link, error) {
	var l buffer.Link
	var rate units.Rate
	if err := rate.UnmarshalText([]byte(f.rate)); err != nil || rate == 0 {
		return l, usagef("--rate: %q is not the rate of a link; write 100Gbps", f.rate)
	}
	l.Rate = uint64(rate)
	metres, err := strconv.ParseFloat(strings.TrimSuffix(f.cable, "m"), 64)
	if err != nil || !strings.HasSuffix(f.cable, "m") || !(metres >= 0 && metres <= 1e6) {
		return l, usagef("--cable: %q is not a length; write 100m (up to 1000000m)", f.cable)
	}
	l.Delay = frame.Time(5 * metres)
	if f.delay != "" {
		if l.Delay, err = span("--delay", f.delay); err != nil {
			return l, err
		}
	}
	if l.Response, err = span("--response", f.response); err != nil {
		return l, err
	}
	if f.mtu < 68 || f.mtu > 9216 {
		return l, usagef("--mtu: %d is not from 68 to 9216", f.mtu)
	}
	l.MaxFrame, l.Overhead = uint32(f.mtu+18), 24
	if f.frame != "" {
		n, err := bytesOf("--frame", f.frame)
		if err != nil {
			return l, err
		}
		if n < 84 || n > 1<<20 {
			return l, usagef("--frame: %s is not from 84B, the shortest on a link, to 1MiB", f.frame)
		}
		l.MaxFrame, l.Overhead = uint32(n-24), 24
	}
	return l, nil
}

func span(flag, text string) (frame.Time, error) {
	var d units.Duration
	if err := d.UnmarshalText([]byte(text)); err != nil {
		return 0, usagef("%s: %w", flag, err)
	}
	return frame.Time(d), nil
}

// bytesOf is the size that a flag gives, 0 where it is empty.
func bytesOf(flag, text string) (uint64, error) {
	var s units.Size
	if text == "" {
		return 0, nil
	}
	if err := s.UnmarshalText([]byte(text)); err != nil {
		return 0, usagef("%s: %w", flag, err)
	}
	return uint64(s), nil
}

// memory is the size of the buffer, up to what a switch can have.
func (f *headroomFlags) memory() (uint64, error) {
	n, err := bytesOf("--buffer", f.buffer)
	if err == nil && (n == 0 || n > 16<<30) {
		err = usagef("--buffer: %s is not from 1B to 16GiB", f.buffer)
	}
	return n, err
}

// terms are those of the skid.
func (r *calculation) terms(b buffer.Budget, what, pauseFrame string) {
	r.term(b.Own, annexN, "own frame", "%s that has just begun when the pause frame is ready", what)
	if pauseFrame != "" {
		r.term(b.Control, annexN, "pause frame", "%s", pauseFrame)
	}
	r.term(b.Cable, annexN, "cable", "rate/8 * 2 * delay of %s", cli.Span(uint64(r.Delay)))
	r.term(b.Response, annexN, "response", "rate/8 * response of %s", cli.Span(uint64(r.Response)))
	r.term(b.Peer, annexN, "peer's frame", "%s that has just begun when the pause takes effect", what)
}

// shared is for a buffer that ports share.
func (f *headroomFlags) shared(r *calculation, link buffer.Link) (err error) {
	if f.batch != "" {
		return usagef("--batch is for --queues input")
	}
	if f.ports < 1 || f.ports > 1024 {
		return usagef("--ports: %d is not from 1 to 1024", f.ports)
	}
	r.Ports, r.Buffer = f.ports, 12<<20
	if f.buffer != "" {
		if r.Buffer, err = f.memory(); err != nil {
			return err
		}
	}
	if r.Cell, err = bytesOf("--cell", f.cell); err != nil {
		return err
	}
	if r.Cell > 1<<16 {
		return usagef("--cell: %s is more than 64KiB", f.cell)
	}
	b := buffer.Headroom(link, uint32(r.Cell))
	r.terms(b, "a frame", "64 + 8 of preamble + 12 of gap")
	r.result(int64(b.Skid()), annexN, "skid", "the sum: arrives after the decision to pause")
	r.term(b.Trigger, "this switch", "trigger", "the frame that found the shared pool full")
	if r.Cell > 1 {
		r.term(b.Rounding, "this switch", "rounding", "what cells of %d B waste of the worst mix of frames", r.Cell)
	}
	each := b.Total()
	if each > r.Buffer {
		return fmt.Errorf("the headroom of one port and lossless class, %d B, is more than the buffer of %d B: enlarge it, or have smaller frames, a shorter cable or a shorter response", each, r.Buffer)
	}
	all := each * uint64(f.classes) * uint64(f.ports)
	r.result(int64(each), "", "headroom", "of a port and class: skid + trigger + rounding")
	r.result(int64(all), "", "all headroom", "%s * %s", fabric.Count(f.ports, "port", "ports"), fabric.Count(f.classes, "class", "classes"))
	left := int64(r.Buffer) - int64(all)
	r.result(left, "", "shared pool", "buffer of %d B - all headroom, reserves not counted", r.Buffer)
	if left < int64(link.MaxFrame) {
		return fmt.Errorf("headroom of %s and %s takes %d B of the buffer of %d B: make it at least %d B, or have fewer lossless classes, smaller frames, shorter cables or a shorter response",
			fabric.Count(f.ports, "port", "ports"), fabric.Count(f.classes, "lossless class", "lossless classes"), all, r.Buffer, all+uint64(link.MaxFrame))
	}
	r.Set = []string{"switch.buffer.headroom left out, so that it is computed", fmt.Sprintf("or at least %dB", each)}
	r.Switch = []string{lossless(fmt.Sprintf("size: %dB, ", r.Buffer), r.Response), port(link)}
	return nil
}

// input is for a buffer of a port's own.
func (f *headroomFlags) input(r *calculation, link buffer.Link) (err error) {
	if f.cell != "" {
		return usagef("--cell is for --queues shared")
	}
	if f.ports != 1 {
		return usagef("--ports is for --queues shared: an input queue has one port")
	}
	if link.Response == 0 {
		// 0s is a response that is left out, in the document of a switch.
		link.Response, r.Response = 1, 1
	}
	r.Buffer = 128 << 10
	if f.buffer != "" {
		if r.Buffer, err = f.memory(); err != nil {
			return err
		}
	}
	if r.Batch, err = bytesOf("--batch", f.batch); err != nil {
		return err
	}
	q := buffer.InputQueue{Size: r.Buffer, Classes: uint64(f.classes), Link: link, Batch: r.Batch}
	t, err := q.Thresholds()
	if err != nil {
		return err
	}
	what := "a frame"
	if t.Hold > t.Frame {
		what = "a batch"
	}
	r.terms(t.Terms, what, "")
	r.result(int64(t.Skid), detailReport, "skid", "the sum; the pause frame itself is not counted")
	r.result(int64(t.Skid)*int64(f.classes), detailReport, "headroom", "n * skid, with n = %d classes", f.classes)
	r.result(t.PauseMax, detailReport, "highest pause", "B/n - skid, with B = %d B; loses where whole frames cross it", r.Buffer)
	r.result(t.FrameSafe, "every order of frames", "frame-safe pause", "B/n - skid - a frame of %d B", t.Frame)
	r.result(t.Safe, "every order of frames", "accepted pause", "the same less 84 B of pause frame: what configurations are held against")
	r.result(int64(t.Pause), detailReport, "pause", "B/2n, but no more than accepted")
	r.result(int64(ends(&t)), detailReport, "unpause", "skid: the queue does not run dry meanwhile; but less than pause")
	r.result(int64(t.Peak), "", "peak", "n * (pause + a frame + skid), of %d B", r.Buffer)
	return r.settings(link, q, &t)
}

// ends is where a pause ends that begins at the threshold: a switch takes less
// than the threshold only.
func ends(t *buffer.Thresholds) uint64 { return min(t.Unpause, t.Pause-1) }

// settings are what is to be written for an input queue. One in which a pause
// would have to end before the skid has left is named with the size that does.
func (r *calculation) settings(link buffer.Link, q buffer.InputQueue, t *buffer.Thresholds) error {
	// One byte of each class more than Enough: a pause ends below its threshold.
	whole := max(t.Enough+q.Classes, leastIngress)
	fits := q.Size >= leastIngress && t.Pause > 1
	switch {
	case whole > crossbar.MaxQueue && !fits:
		return fmt.Errorf("an ingress queue of %d B would be needed, and at most %d B are possible: have fewer classes, a shorter cable or a shorter response", whole, crossbar.MaxQueue)
	case !fits, t.Pause <= t.Skid && whole <= crossbar.MaxQueue:
		given := ""
		if fits {
			given = fmt.Sprintf("; switch.crossbar: {ingress: %dB, pause: %dB, unpause: %dB} loses nothing either", q.Size, t.Pause, ends(t))
		}
		r.Notes = append(r.Notes, fmt.Sprintf("the ingress queue must have at least %d B for this link, which idles after each pause with %d B%s", whole, q.Size, given))
		q.Size = whole
		enough, err := q.Thresholds()
		if err != nil {
			return err
		}
		t = &enough
	case t.Pause <= t.Skid:
		r.Notes = append(r.Notes, fmt.Sprintf("the link idles after a pause: %d B of buffer would be enough, more than the %d B that are possible", whole, crossbar.MaxQueue))
	}
	keys := fmt.Sprintf("ingress: %dB, pause: %dB, unpause: %dB", q.Size, t.Pause, ends(t))
	r.Set = []string{"switch.crossbar: {" + keys + "}"}
	r.Switch = []string{
		fmt.Sprintf("crossbar: {%s, batch: %dB}", keys, t.Hold),
		lossless("", r.Response),
		port(link),
	}
	return nil
}

// leastIngress is the smallest ingress queue that configurations take.
const leastIngress = 2048

func lossless(before string, response int64) string {
	return fmt.Sprintf("buffer: {%slossless: {response: %v}}", before, units.Duration(response))
}

// port is what a port of a switch needs to know of its link.
func port(l buffer.Link) string {
	return fmt.Sprintf("ports: [{rate: %v, delay: %v, mtu: %d}]", units.Rate(l.Rate), units.Duration(l.Delay), l.MaxFrame-18)
}

func (r *calculation) write(w io.Writer) error {
	fmt.Fprintf(w, "%v, %s one way, frames of up to %d B on the link, lossless classes: %d\n\n", units.Rate(r.Rate), cli.Span(uint64(r.Delay)), r.Frame, r.Classes)
	for _, l := range r.Lines {
		mark := " "
		if l.Result {
			mark = "="
		}
		text := l.Formula
		if l.Source != "" {
			text += " (" + l.Source + ")"
		}
		fmt.Fprintf(w, "%s %-16s %12d B  %s\n", mark, l.Name, l.Bytes, text)
	}
	fmt.Fprintln(w)
	for _, note := range r.Notes {
		fmt.Fprintln(w, note)
	}
	fmt.Fprintf(w, "to be set in a scenario: %s\nto be set in a switch:\n", strings.Join(r.Set, "; "))
	for _, key := range r.Switch {
		fmt.Fprintf(w, "    %s\n", key)
	}
	return nil
}
