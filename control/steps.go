package control

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
)

// CatchPanic runs the part of a change that only reads and compares. A panic there is a
// defect of this program, but no reason to stop forwarding: it becomes an error like any
// other, and nothing is changed.
func CatchPanic(log *slog.Logger, what func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("preparing a configuration", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fmt.Errorf("a fault of this program while it looked at the configuration (%v); nothing has changed, and the log says where: please report it", r)
		}
	}()
	return what()
}

// Stepper does something, and records how to undo it.
type Stepper func(do, back func() error) error

// InSteps runs steps. If they fail, those that were done are undone, the last one first.
func InSteps(log *slog.Logger, steps func(Stepper) error) error {
	var undo []func() error
	err := steps(func(do, back func() error) error {
		if err := do(); err != nil {
			return err
		}
		undo = append(undo, back)
		return nil
	})
	if err == nil {
		return nil
	}
	for _, back := range slices.Backward(undo) {
		if uerr := back(); uerr != nil {
			// Nothing better is possible than to log it and continue.
			log.Error("taking a change back", "err", uerr)
		}
	}
	return err
}
