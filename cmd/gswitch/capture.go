package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/api"
)

func (a *app) captureCommand() *cobra.Command {
	var r api.CaptureRequest
	var file string
	var duration time.Duration
	c := &cobra.Command{
		Use:   "capture [-p PORT ...] -w FILE [FILTER ...]",
		Short: "Capture frames of ports as pcapng",
		Long: `Write the frames of the named ports, or of all, to a pcapng file or to standard
output: all, or those that a filter in the manner of tcpdump selects. They come
with their direction, interface, time in nanoseconds, and the reason of those
that were dropped. Forwarding never waits for it. Ends with Ctrl-C.`,
		Example: `  gswitch capture -p p1 -p p2 -w trace.pcapng
  gswitch capture -w - udp port 4791 | tshark -r -
  gswitch capture --drops --in --duration 10s -w drops.pcapng`,
		RunE: func(c *cobra.Command, words []string) error {
			var out io.Writer = c.OutOrStdout()
			switch {
			case file == "":
				return usageError{errors.New("capture where? Give a file with -w, or -w - for standard output")}
			case file == "-" && isTerminal(out):
				return usageError{errors.New("pcapng does not go to a terminal; give a file with -w, or pipe it into tshark -r -")}
			case file != "-":
				f := &lateFile{name: file}
				defer f.close()
				out = f
			}
			r.Filter = strings.Join(words, " ")
			ctx, stop := signal.NotifyContext(c.Context(), unix.SIGINT, unix.SIGTERM)
			defer stop()
			if duration > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, duration)
				defer cancel()
			}
			got, err := a.capture(ctx, &r, out)
			if err == nil {
				got.report(c.ErrOrStderr(), file)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVarP(&file, "write", "w", "", "file, or - for standard output")
	f.StringArrayVarP(&r.Ports, "port", "p", nil, "port, or switch/port (repeat); all if left out")
	f.BoolVar(&r.In, "in", false, "frames that arrive")
	f.BoolVar(&r.Out, "out", false, "frames that leave")
	f.BoolVar(&r.Drops, "drops", false, "frames that are dropped too")
	f.Uint32VarP(&r.Snap, "snap", "s", 0, "bytes of a frame, 0 is all")
	f.DurationVar(&duration, "duration", 0, "end after so long")
	return c
}

// lateFile is made when the first block comes: a capture that is refused
// leaves no empty file, and a file that is there as it was.
type lateFile struct {
	name string
	f    *os.File
}

func (l *lateFile) Write(b []byte) (n int, err error) {
	if l.f == nil {
		if l.f, err = os.Create(l.name); err != nil {
			return 0, err
		}
	}
	return l.f.Write(b)
}

func (l *lateFile) close() {
	if l.f != nil {
		l.f.Close()
	}
}

// captured is what came of a capture.
type captured struct {
	bytes, frames int    // in the file
	dropped       uint64 // selected, but lost on the way to it
}

// report says what came of it. Standard output is somebody else's: only a
// loss is told then.
func (g captured) report(w io.Writer, file string) {
	if file != "-" {
		fmt.Fprintf(w, "%s, %d bytes in %s\n", plural(g.frames, "frame"), g.bytes, file)
	}
	if g.dropped > 0 {
		fmt.Fprintf(w, "%s more lost by the capture: they came faster than they were written; forwarding was not affected\n", plural(int(g.dropped), "frame"))
	}
}

func (a *app) capture(ctx context.Context, r *api.CaptureRequest, out io.Writer) (captured, error) {
	var got captured
	client, address, err := a.client()
	if err != nil {
		return got, err
	}
	// A stream has no deadline; whether anybody answers is found out before.
	if _, err := client.GetVersion(ctx, &api.GetVersionRequest{}); err != nil {
		return got, control.Explain(address, err)
	}
	stream, err := client.Capture(ctx, r)
	if err != nil {
		return got, control.Explain(address, err)
	}
	defer stream.Close()
	w := blockWriter{out: out}
	for stream.Receive() {
		m := stream.Msg()
		err := w.write(m.Pcapng)
		got = captured{bytes: w.written, frames: w.packets, dropped: m.Dropped}
		if err != nil {
			return got, err
		}
	}
	if err := stream.Err(); err != nil && ctx.Err() == nil {
		return got, control.Explain(address, err)
	}
	return got, nil
}

// blockWriter writes whole pcapng blocks only, so that what is cut off in the
// middle still is a file. A block begins with its type and its length, four
// bytes each (draft-ietf-opsawg-pcapng section 3.1).
type blockWriter struct {
	out     io.Writer
	rest    []byte
	written int
	packets int // Enhanced Packet Blocks among what was written (section 4.3)
}

func (w *blockWriter) write(b []byte) error {
	w.rest = append(w.rest, b...)
	end := 0
	for len(w.rest)-end >= 8 {
		n := int(binary.LittleEndian.Uint32(w.rest[end+4:]))
		if n < 12 {
			return fmt.Errorf("the stream is not pcapng: a block of %d bytes", n)
		}
		if end+n > len(w.rest) {
			break
		}
		if binary.LittleEndian.Uint32(w.rest[end:]) == 6 {
			w.packets++
		}
		end += n
	}
	n, err := w.out.Write(w.rest[:end])
	w.written += n
	w.rest = append(w.rest[:0], w.rest[end:]...)
	return err
}
