package results

import (
	"encoding/csv"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// A tidy table has one column for each variable and one row for each
// observation, as data frames take it: a cell is a string, an int64, a float64,
// or nil where there is nothing to say.
type tidy struct {
	columns []column
	rows    [][]any
}

// column is one of a table. What is not there in some rows is optional.
type column struct {
	name     string
	of       parquet.Node
	optional bool
}

func text(name string) column { return column{name: name, of: parquet.String()} }
func whole(name string) column {
	return column{name: name, of: parquet.Leaf(parquet.Int64Type)}
}
func real(name string) column { return column{name: name, of: parquet.Leaf(parquet.DoubleType)} }

// sweptKeys are the keys that the runs were swept over.
func sweptKeys(runs []Run) []string {
	swept := map[string]bool{}
	for i := range runs {
		for key := range runs[i].Params {
			swept[key] = true
		}
	}
	return slices.Sorted(maps.Keys(swept))
}

func texts(names []string) (v []column) {
	for _, name := range names {
		v = append(v, text(name))
	}
	return v
}

// csv writes the table with a first line of names (RFC 4180). Numbers are the
// shortest that read back as what they are.
func (t *tidy) csv(w io.Writer) error {
	c := csv.NewWriter(w)
	line := make([]string, len(t.columns))
	for i := range t.columns {
		line[i] = t.columns[i].name
	}
	c.Write(line) // the error stays until Error
	for _, row := range t.rows {
		for i, cell := range row {
			switch v := cell.(type) {
			case string:
				line[i] = v
			case int64:
				line[i] = strconv.FormatInt(v, 10)
			case float64:
				line[i] = Number(v)
			default:
				line[i] = ""
			}
		}
		c.Write(line)
	}
	c.Flush()
	return c.Error()
}

// parquet writes the table as a file of Apache Parquet.
func (t *tidy) parquet(w io.Writer, name string) error {
	group := parquet.Group{}
	for _, c := range t.columns {
		node := c.of
		if node.Type().Kind() == parquet.ByteArray {
			node = parquet.Encoded(node, &parquet.RLEDictionary)
		}
		if c.optional {
			node = parquet.Optional(node)
		}
		group[c.name] = node
	}
	schema := parquet.NewSchema(name, group)
	place := make([]int, len(t.columns)) // in the file, where columns are ordered by name
	for i, c := range t.columns {
		leaf, _ := schema.Lookup(c.name)
		place[i] = leaf.ColumnIndex
	}
	p := parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Zstd))
	row := make(parquet.Row, len(t.columns))
	var err error
	for _, cells := range t.rows {
		for i, cell := range cells {
			defined := 0
			if t.columns[i].optional && cell != nil {
				defined = 1
			}
			row[place[i]] = parquet.ValueOf(cell).Level(0, defined, place[i])
		}
		if _, err = p.WriteRows([]parquet.Row{row}); err != nil {
			break
		}
	}
	return errors.Join(err, p.Close())
}
