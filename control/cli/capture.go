package cli

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

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/control"
	"gswitch/control/api"
)

// Capture are the flags of the verb that captures frames.
type Capture struct {
	Request  api.CaptureRequest
	file     string
	duration time.Duration
	count    int
}

// Flags adds the flags.
func (k *Capture) Flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&k.file, "write", "w", "", "file, or - for standard output")
	f.BoolVar(&k.Request.In, "in", false, "frames that arrive")
	f.BoolVar(&k.Request.Out, "out", false, "frames that leave")
	f.BoolVar(&k.Request.Drops, "drops", false, "frames that are dropped too")
	f.Uint32VarP(&k.Request.Snap, "snap", "s", 0, "bytes of a frame, 0 is all")
	f.DurationVar(&k.duration, "duration", 0, "end after so long")
	f.IntVarP(&k.count, "count", "n", 0, "end after so many frames")
}

// Run captures what open begins to send into the file. The words are the
// filter. address is the daemon's, for messages.
func (k *Capture) Run(c *cobra.Command, words []string, begin func(ctx context.Context, r *api.CaptureRequest) (stream *connect.ServerStreamForClient[api.CaptureResponse], address string, err error)) error {
	out := c.OutOrStdout()
	switch {
	case k.count < 0:
		return Usage(fmt.Errorf("--count %d: a number of frames is meant, 0 is no end", k.count))
	case k.file == "":
		return Usage(errors.New("capture where? Give a file with -w, or -w - for standard output"))
	case k.file == "-" && isTerminal(out):
		return Usage(errors.New("pcapng does not go to a terminal; give a file with -w, or pipe it into tshark -r -"))
	case k.file != "-":
		f := &lateFile{name: k.file}
		defer f.close()
		out = f
	}
	k.Request.Filter = strings.Join(words, " ")
	ctx, stop := signal.NotifyContext(c.Context(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if k.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, k.duration)
		defer cancel()
	}
	stream, address, err := begin(ctx, &k.Request)
	if err != nil {
		return err
	}
	defer stream.Close()
	w := blockWriter{out: out, most: k.count}
	var got captured
	for !w.full() && stream.Receive() {
		m := stream.Msg()
		err := w.write(m.Pcapng)
		got = captured{bytes: w.written, frames: w.packets, dropped: m.Dropped}
		if err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil && ctx.Err() == nil {
		return control.Explain(address, err)
	}
	got.report(c.ErrOrStderr(), k.file)
	return nil
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
// loss is reported then.
func (g captured) report(w io.Writer, file string) {
	if file != "-" {
		fmt.Fprintf(w, "%s, %d bytes in %s\n", Plural(g.frames, "frame"), g.bytes, file)
	}
	if g.dropped > 0 {
		fmt.Fprintf(w, "%s more lost by the capture: they came faster than they were written; forwarding was not affected\n", Plural(int(g.dropped), "frame"))
	}
}

// blockWriter writes whole pcapng blocks only, so that what is cut off in the
// middle still is a file. A block begins with its type and its length, four
// bytes each (draft-ietf-opsawg-pcapng section 3.1).
type blockWriter struct {
	out     io.Writer
	most    int // packets; 0 no end
	rest    []byte
	written int
	packets int // Enhanced Packet Blocks among what was written (section 4.3)
}

// full reports whether there are as many packets as were wanted.
func (w *blockWriter) full() bool { return w.most > 0 && w.packets >= w.most }

func (w *blockWriter) write(b []byte) error {
	w.rest = append(w.rest, b...)
	end := 0
	for !w.full() && len(w.rest)-end >= 8 {
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
