package flows

import (
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"gswitch/fabric/results"
	"gswitch/wholefile"
)

// Slot is what a switch counted of a flow in a slot: a line of slots.csv.
type Slot struct {
	Slot    float64 `json:"slot"` // its beginning, seconds
	Length  float64 `json:"length"`
	Switch  string  `json:"switch"`
	Link    string  `json:"link"`
	Flow    string  `json:"flow"`
	Packets uint64  `json:"packets"`
	Bytes   uint64  `json:"bytes"`
	Exact   bool    `json:"exact"`
}

// slotsName is the file of the slots of all runs.
const slotsName = "slots.csv"

// Slots are those of a run.
var Slots results.Part[[]Slot]

func init() { Slots = results.NewFilePart[[]Slot](slotsName, encodeSlots, takeSlots) }

// takeSlots gives runs the slots of a file.
func takeSlots(r io.Reader, runs []results.Run) error {
	v := make([][]Slot, len(runs))
	err := decodeSlots(r, func(run int, s Slot) {
		if run >= 0 && run < len(v) {
			v[run] = append(v[run], s)
		}
	})
	for i := range v {
		if len(v[i]) > 0 {
			Slots.Set(&runs[i], v[i])
		}
	}
	return err
}

// slotColumns is the first line of slots.csv. run counts the runs of results.json
// from 0.
var slotColumns = []string{"run", "name", "slot_s", "length_s", "switch", "link", "flow", "packets", "bytes", "exact"}

// encodeSlots writes what switches counted of flows in the slots of all runs.
func encodeSlots(w io.Writer, runs []results.Run) error {
	c := csv.NewWriter(w)
	c.Write(slotColumns)
	for i := range runs {
		for _, s := range Slots.Of(&runs[i]) {
			c.Write([]string{strconv.Itoa(i), runs[i].Name, results.Number(s.Slot), results.Number(s.Length), s.Switch, s.Link, s.Flow, strconv.FormatUint(s.Packets, 10), strconv.FormatUint(s.Bytes, 10), strconv.FormatBool(s.Exact)})
		}
	}
	c.Flush()
	return c.Error()
}

// LoadSlots calls each with every line of slots.csv in a directory of results, with
// the run that it is of.
func LoadSlots(dir string, each func(run int, s Slot)) error {
	path := filepath.Join(dir, slotsName)
	f, err := wholefile.OpenPlain(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := decodeSlots(f, each); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// decodeSlots calls each with every line of slots.csv.
func decodeSlots(r io.Reader, each func(run int, s Slot)) error {
	c := csv.NewReader(r)
	c.FieldsPerRecord, c.ReuseRecord = len(slotColumns), true
	for line := 1; ; line++ {
		row, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if line == 1 {
			continue
		}
		s := Slot{Switch: row[4], Link: row[5], Flow: row[6]}
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
				return fmt.Errorf("line %d: %w", line, err)
			}
		}
		each(run, s)
	}
}
