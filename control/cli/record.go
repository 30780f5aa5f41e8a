package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"gswitch/control"
	"gswitch/units"
)

// RecordFlags are the flags of run that say how nodes are recorded.
type RecordFlags struct {
	Dir   string // of the files, "" if nothing is recorded
	limit string
	last  string
	on    []string
	parse func(words []string) (control.Triggers, error)
}

// Flags adds the flags. what are the nodes, ask the ways to ask for a file of what is kept,
// events those that ask by themselves, which parse reads.
func (r *RecordFlags) Flags(f *pflag.FlagSet, what, ask string, events []string, parse func([]string) (control.Triggers, error)) {
	r.parse = parse
	f.StringVar(&r.Dir, "record", "", "record every "+what+" to a file in this directory, from its beginning (gfabric replay)")
	f.StringVar(&r.limit, "record-limit", "", "end a record of this size, as in 1GiB; it grows until it is stopped if left out")
	f.StringVar(&r.last, "record-last", "", "keep the last inputs in this much memory, as in 64MiB, and write them to a file when they are asked for: "+ask+", --record-on")
	f.StringSliceVar(&r.on, "record-on", nil, "with --record-last, write a file at these events: "+strings.Join(events, ", "))
}

// Options returns what the flags say.
func (r *RecordFlags) Options() (o control.RecordOptions, err error) {
	for _, size := range []struct {
		flag, given string
		to          *uint64
	}{{"record-limit", r.limit, &o.Limit}, {"record-last", r.last, &o.Last}} {
		switch {
		case size.given == "":
			continue
		case r.Dir == "":
			return o, fmt.Errorf("--%s goes with --record", size.flag)
		}
		if *size.to, err = units.Bytes.Whole(size.given, 1<<62); err != nil {
			return o, fmt.Errorf("--%s: %w", size.flag, err)
		}
	}
	if len(r.on) == 0 {
		return o, nil
	}
	if r.last == "" {
		return o, errors.New("--record-on goes with --record-last: what goes to a file as it comes is there already")
	}
	if o.On, err = r.parse(r.on); err != nil {
		return o, fmt.Errorf("--record-on: %w", err)
	}
	return o, nil
}

// saveOnSignal calls save, which writes out what is recorded, at SIGUSR1, until ctx ends.
func saveOnSignal(ctx context.Context, save func(why string) error, log *slog.Logger) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGUSR1)
	defer signal.Stop(asked)
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			if err := save("SIGUSR1"); err != nil {
				log.Warn("SIGUSR1: nothing was saved", "error", err)
			}
		}
	}
}
