package ns3

import (
	"bytes"
	"fmt"
	"strconv"
)

// reader walks through the lines of a file of columns.
type reader struct {
	file string
	data []byte
	line int // of the fields returned last, from 1
}

// fail is an error at the line read last.
func (r *reader) fail(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.file, r.line, fmt.Sprintf(format, args...))
}

// next returns the fields of the next line that has any; nil at the end.
func (r *reader) next() [][]byte {
	for len(r.data) > 0 {
		var l []byte
		r.line++
		if i := bytes.IndexByte(r.data, '\n'); i >= 0 {
			l, r.data = r.data[:i], r.data[i+1:]
		} else {
			l, r.data = r.data, nil
		}
		if f := bytes.Fields(l); len(f) > 0 {
			return f
		}
	}
	return nil
}

// row returns the next line, which must have n fields.
func (r *reader) row(n int, what string) ([][]byte, error) {
	f := r.next()
	switch {
	case f == nil:
		r.line++
		return nil, r.fail("the file ends where %s should stand", what)
	case len(f) != n:
		return nil, r.fail("%d fields instead of the %d of %s", len(f), n, what)
	}
	return f, nil
}

// end refuses lines after what the file announced.
func (r *reader) end(what string) error {
	if f := r.next(); f != nil {
		return r.fail("%q stands after the last %s that the first line announces", bytes.Join(f, []byte(" ")), what)
	}
	return nil
}

// number parses a decimal field of at most max.
func (r *reader) number(b []byte, max uint64, what string) (uint64, error) {
	v, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return 0, r.fail("%s %q is not a number", what, b)
	}
	if v > max {
		return 0, r.fail("%s %d is above %d", what, v, max)
	}
	return v, nil
}
