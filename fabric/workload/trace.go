package workload

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gswitch/frame"
)

// traceColumns are those that a trace must have, in any order, among others
// that mean nothing here: flows.csv of a run is a trace. In one of several runs the column
// run says which a flow is of.
var traceColumns = []string{"start_s", "src", "dst", "bytes"}

// maxStart bounds the start of a flow of a trace, in seconds: a day.
const maxStart = 86400

// ParseTrace reads flows from CSV (RFC 4180) whose first line names the
// columns: start_s (seconds from the beginning), src and dst (as host takes
// them), bytes. file is the name that errors carry, with the line. Of a file with
// the flows of several runs it takes those of run, see runs.
func ParseTrace(file string, data []byte, run string, host func(name string) (int32, error)) ([]Flow, error) {
	r := csv.NewReader(bytes.NewReader(data))
	r.ReuseRecord, r.TrimLeadingSpace, r.Comment = true, true, '#'
	head, err := r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, name := range slices.Concat(traceColumns, runColumns) {
		if i := slices.Index(head, name); i >= 0 && slices.Contains(head[i+1:], name) {
			return nil, fmt.Errorf("%s:1: the column %s stands there twice", file, name)
		}
	}
	of, err := newRuns(head, run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var at [4]int
	for i, name := range traceColumns {
		if at[i] = slices.Index(head, name); at[i] < 0 {
			return nil, fmt.Errorf("%s:1: there is no column %s; the first line of a trace names its columns, among them start_s, src, dst and bytes", file, name)
		}
	}
	var flows []Flow
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if !of.take(row) {
			continue
		}
		f, column, err := traced(row, at, host)
		if err != nil {
			line, _ := r.FieldPos(column)
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		f.Event = uint32(len(flows))
		flows = append(flows, f)
	}
	if err := of.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(flows) == 0 {
		return nil, fmt.Errorf("%s: has no flows", file)
	}
	return flows, nil
}

// traced reads a line. Errors come with the column that is to blame.
func traced(row []string, at [4]int, host func(name string) (int32, error)) (f Flow, column int, err error) {
	start, err := strconv.ParseFloat(row[at[0]], 64)
	if err != nil || !(start >= 0 && start <= maxStart) {
		return f, at[0], fmt.Errorf("start_s: %q is not a number of seconds from 0 to %d", row[at[0]], maxStart)
	}
	f = Flow{At: frame.Time(math.Round(start * 1e9)), Conn: -1}
	if f.Src, err = host(row[at[1]]); err != nil {
		return f, at[1], fmt.Errorf("src: %w", err)
	}
	if f.Dst, err = host(row[at[2]]); err != nil {
		return f, at[2], fmt.Errorf("dst: %w", err)
	}
	if f.Src == f.Dst {
		return f, at[2], fmt.Errorf("dst: %s sends to itself", row[at[2]])
	}
	if f.Bytes, err = strconv.ParseUint(row[at[3]], 10, 64); err != nil || f.Bytes == 0 || f.Bytes > 1<<50 {
		return f, at[3], fmt.Errorf("bytes: %q is not a number from 1 to 2^50", row[at[3]])
	}
	return f, 0, nil
}
