package results

import (
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"gswitch/wholefile"
)

// slotColumns is the first line of slots.csv. run counts the runs of results.json
// from 0.
var slotColumns = []string{"run", "name", "slot_s", "length_s", "switch", "link", "flow", "packets", "bytes", "exact"}

// encodeSlots writes what switches counted of flows in the slots of all runs.
func encodeSlots(w io.Writer, runs []Run) error {
	c := csv.NewWriter(w)
	c.Write(slotColumns)
	for i := range runs {
		for _, s := range runs[i].Slots {
			c.Write([]string{strconv.Itoa(i), runs[i].Name, number(s.Slot), number(s.Length), s.Switch, s.Link, s.Flow, strconv.FormatUint(s.Packets, 10), strconv.FormatUint(s.Bytes, 10), strconv.FormatBool(s.Exact)})
		}
	}
	c.Flush()
	return c.Error()
}

// LoadSlots calls each with every line of slots.csv in a directory of results, with
// the run that it is of.
func LoadSlots(dir string, each func(run int, s FlowSlot)) error {
	path := filepath.Join(dir, slotsName)
	f, err := wholefile.OpenPlain(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.FieldsPerRecord, c.ReuseRecord = len(slotColumns), true
	for line := 1; ; line++ {
		row, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if line == 1 {
			continue
		}
		s := FlowSlot{Switch: row[4], Link: row[5], Flow: row[6]}
		var run int
		var errs [6]error
		run, errs[0] = strconv.Atoi(row[0])
		s.Slot, errs[1] = strconv.ParseFloat(row[2], 64)
		s.Length, errs[2] = strconv.ParseFloat(row[3], 64)
		s.Packets, errs[3] = strconv.ParseUint(row[7], 10, 64)
		s.Bytes, errs[4] = strconv.ParseUint(row[8], 10, 64)
		s.Exact, errs[5] = strconv.ParseBool(row[9])
		for _, err := range errs {
			if err != nil {
				return fmt.Errorf("%s:%d: %w", path, line, err)
			}
		}
		each(run, s)
	}
}
