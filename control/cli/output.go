package cli

import "os"

// Output is standard output. It keeps the error of what could not be written, so that a program
// whose tables go to a full disk does not end as if all were well.
type Output struct{ failed error }

func (o *Output) Write(b []byte) (int, error) {
	n, err := os.Stdout.Write(b)
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return n, err
}

// Fd lets tables find out whether they are on a terminal.
func (o *Output) Fd() uintptr { return os.Stdout.Fd() }

// Failed returns err or, if that is nil, what could not be written.
func (o *Output) Failed(err error) error {
	if err == nil {
		err = o.failed
	}
	return err
}
