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
				f, err := os.Create(file)
				if err != nil {
					return err
				}
				defer f.Close()
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
			n, err := a.capture(ctx, &r, out)
			if err == nil && file != "-" {
				fmt.Fprintf(c.ErrOrStderr(), "%d bytes in %s\n", n, file)
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

func (a *app) capture(ctx context.Context, r *api.CaptureRequest, out io.Writer) (int, error) {
	client, address, err := a.client()
	if err != nil {
		return 0, err
	}
	stream, err := client.Capture(ctx, r)
	if err != nil {
		return 0, control.Explain(address, err)
	}
	defer stream.Close()
	w := blockWriter{out: out}
	for stream.Receive() {
		if err := w.write(stream.Msg().Pcapng); err != nil {
			return w.written, err
		}
	}
	if err := stream.Err(); err != nil && ctx.Err() == nil {
		return w.written, control.Explain(address, err)
	}
	return w.written, nil
}

// blockWriter writes whole pcapng blocks only, so that what is cut off in the
// middle still is a file. A block begins with its type and its length, four
// bytes each (draft-ietf-opsawg-pcapng section 3.1).
type blockWriter struct {
	out     io.Writer
	rest    []byte
	written int
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
		end += n
	}
	n, err := w.out.Write(w.rest[:end])
	w.written += n
	w.rest = append(w.rest[:0], w.rest[end:]...)
	return err
}
