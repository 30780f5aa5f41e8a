// Package scenario defines the document that describes an experiment for every engine:
// the network, the behaviour of its switches and hosts, the workload, the faults, the
// measurements and the expected results.
//
//	Load, Parse   a file to a Scenario: the runs that its variants, its sweep
//	              and its seeds ask for, each with everything set and checked
//	Schema        JSON Schema of the files, for editors
//	Evaluate      the expectations against what was measured
//
// Variants, sweeps, the section short and the command line set keys by paths, such as
// hosts.params.eta, workload[0].size or workload.mice.size (an element of a list is
// addressed by its group or name). An error carries the file, line and column of the
// offending value, whatever set it.
//
// # Expectations
//
// An expectation compares values of runs: numbers, + - * /, < <= > >= == !=
// (a < b < c is both), and, or, and the functions min, max, abs, ratio and
// between. Numbers may have units (30KB, 105us, 90Gbps, 5%); values are in
// bytes, seconds and bit/s.
//
//	slowdown_p99 < 3                        in every run
//	hpcc.slowdown_p99 < 3                   in every run of the variant hpcc
//	ratio(dcqcn.queue_p95_bytes, hpcc.queue_p95_bytes) > 10
//	hpcc{load=0.5}.slowdown_p99 < 3         at one point of the sweep
//	between(later.jain, 0.95, 1)            a value of a window, group or event
//
// If the sweep is not pinned, the expectation is evaluated at every point, with all
// values taken from that point. With several seeds, values are means.
//
// A result that a paper reports and that is known not to be reproduced is listed under
// deviates, with the paper's own numbers and a reason. It is reported as such, and fails
// if it is reproduced after all.
package scenario
