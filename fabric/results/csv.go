package results

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// FlowColumns are the first columns of flows.csv; those that follow report its
// run. run counts the runs of results.json from 0. Times are in seconds; an
// empty fct_s and slowdown are of a flow that did not finish.
var FlowColumns = []string{"run", "name", "id", "src", "dst", "group", "bytes", "start_s", "fct_s", "ideal_s", "slowdown", "retransmitted"}

// Number is the shortest decimal that reads back as v.
func Number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// EncodeFlows writes the flows of all runs as flows.csv.
func EncodeFlows(w io.Writer, runs []Run) error {
	keys := sweptKeys(runs)
	c := csv.NewWriter(w)
	c.Write(slices.Concat(FlowColumns, ofRun, keys)) // the error stays until Error
	row := make([]string, len(FlowColumns))
	for i := range runs {
		of := []string{runs[i].Variant(), runs[i].Engine, strconv.FormatUint(runs[i].Seed, 10)}
		for _, key := range keys {
			of = append(of, runs[i].Params[key])
		}
		for _, f := range runs[i].Flows {
			row = append(row[:0], strconv.Itoa(i), runs[i].Name, strconv.Itoa(f.ID), f.Src, f.Dst, f.Group, strconv.FormatUint(f.Bytes, 10),
				Number(f.Start), "", Number(f.Ideal), "", strconv.FormatUint(uint64(f.Retrans), 10))
			if f.FCT > 0 {
				row[8], row[10] = Number(f.FCT), Number(f.Slowdown)
			}
			c.Write(append(row, of...))
		}
	}
	c.Flush()
	return c.Error()
}

// ofRun are the columns of flows.csv that report the run; those of swept keys follow.
var ofRun = []string{"variant", "engine", "seed"}

// DecodeFlows reads flows.csv into runs. What reports the run stands in
// results.json, too, and is passed over. Errors name the line.
func DecodeFlows(r io.Reader, runs []Run) error {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	head, err := c.Read()
	if err != nil {
		return err
	}
	if len(head) < len(FlowColumns) || !slices.Equal(head[:len(FlowColumns)], FlowColumns) {
		return fmt.Errorf("line 1: the columns are %v, and do not begin with %v", head, FlowColumns)
	}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		run, f, err := parseFlow(row)
		if err == nil && run >= len(runs) {
			err = fmt.Errorf("run %d: there are %d in results.json", run, len(runs))
		}
		if err != nil {
			line, _ := c.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
		runs[run].Flows = append(runs[run].Flows, f)
	}
}

func parseFlow(row []string) (run int, f Flow, err error) {
	field := func(i, bits int) uint64 {
		v, e := strconv.ParseUint(row[i], 10, bits)
		if e != nil && err == nil {
			err = fmt.Errorf("%s: %q is not a number that fits", FlowColumns[i], row[i])
		}
		return v
	}
	decimal := func(i int, empty bool) float64 {
		if empty && row[i] == "" {
			return 0
		}
		v, e := strconv.ParseFloat(row[i], 64)
		if (e != nil || !isFinite(v) || v < 0) && err == nil {
			err = fmt.Errorf("%s: %q is not a number of 0 or more", FlowColumns[i], row[i])
		}
		return v
	}
	run = int(field(0, 31))
	f = Flow{
		ID: int(field(2, 63)), Src: row[3], Dst: row[4], Group: row[5], Bytes: field(6, 64),
		Start: decimal(7, false), FCT: decimal(8, true), Ideal: decimal(9, false), Slowdown: decimal(10, true), Retrans: uint32(field(11, 32)),
	}
	return run, f, err
}

// encodeSeries writes series of one name as t, object, value.
func encodeSeries(w io.Writer, series []Series) error {
	c := csv.NewWriter(w)
	c.Write([]string{"t", "object", "value"})
	for i := range series {
		s := &series[i]
		for k := range min(len(s.T), len(s.V)) {
			c.Write([]string{Number(s.T[k]), s.Object, Number(s.V[k])})
		}
	}
	c.Flush()
	return c.Error()
}

// encodeCDF writes a distribution as x, f.
func encodeCDF(w io.Writer, d *CDF) error {
	c := csv.NewWriter(w)
	c.Write([]string{"x", "f"})
	for k := range min(len(d.X), len(d.F)) {
		c.Write([]string{Number(d.X[k]), Number(d.F[k])})
	}
	c.Flush()
	return c.Error()
}
