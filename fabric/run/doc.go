// Package run executes the runs of a scenario in virtual time, side by side on
// the cores of the machine, one engine for each run, and collects what they
// measured. A run gives the same result whatever runs beside it.
package run
