// Package run executes the runs of a scenario and collects their measurements: in virtual
// time, in parallel on the cores of the machine with one engine per run, or on real
// frames, one after the other. In virtual time a run's result does not depend on what
// runs beside it.
package run
