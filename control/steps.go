package control

import (
	"log/slog"
	"slices"
)

// Stepper does something, and notes how to take it back.
type Stepper func(do, back func() error) error

// InSteps runs steps. If they fail, those that were done are taken back, the
// last one first.
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
			// Nothing better can be done than to say so and go on.
			log.Error("taking a change back", "err", uerr)
		}
	}
	return err
}
