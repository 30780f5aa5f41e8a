package units

import (
	"fmt"
	"math"
	"strconv"
)

// Rate is in bits per second. Zero is unlimited.
type Rate uint64

// Size is in bytes.
type Size uint64

// Duration is in nanoseconds.
type Duration int64

// Spans, for documents that a program writes.
const (
	Nanosecond  Duration = 1
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
)

// Rates and sizes, for documents that a program writes.
const (
	Kbps Rate = 1_000
	Mbps      = 1_000 * Kbps
	Gbps      = 1_000 * Mbps

	KB  Size = 1_000
	MB       = 1_000 * KB
	KiB Size = 1 << 10
	MiB      = 1 << 20
)

// maxRate is the fastest link that can be asked for.
const maxRate = 100e12

// UnmarshalText reads a rate; unlimited is zero.
func (r *Rate) UnmarshalText(text []byte) error {
	if string(text) == "unlimited" {
		*r = 0
		return nil
	}
	v, err := Bits.Whole(string(text), maxRate)
	if err == nil && v == 0 {
		return fmt.Errorf("%q is not a rate: nothing would ever leave; write unlimited for a link without emulated speed", text)
	}
	*r = Rate(v)
	return err
}

// MarshalText writes what UnmarshalText reads.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Rate) String() string {
	if r == 0 {
		return "unlimited"
	}
	return Bits.exact(uint64(r))
}

// UnmarshalText reads a size of up to 1 PiB.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := Bytes.Whole(string(text), 1<<50)
	*s = Size(v)
	return err
}

// MarshalText writes what UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
func (s Size) String() string               { return Bytes.exact(uint64(s)) }

// UnmarshalText reads a duration of up to 73 years.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := Time.Whole(string(text), math.MaxInt64/4)
	*d = Duration(v)
	return err
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string {
	if d < 0 {
		return "-" + Duration(-d).String()
	}
	if d%Second == 0 && d != 0 {
		return strconv.FormatInt(int64(d/Second), 10) + "s"
	}
	return Time.exact(uint64(d))
}

// JSONSchema describes rates in a schema for editors.
func (Rate) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^(unlimited|" + Bits.expression() + ")$"}
}

// JSONSchema describes sizes.
func (Size) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^" + Bytes.expression() + "$"}
}

// JSONSchema describes durations.
func (Duration) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^" + Time.expression() + "$"}
}
