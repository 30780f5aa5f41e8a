// Package scenario is the document that describes an experiment for every
// engine: a network, what its switches and hosts do, who sends what, what goes
// wrong, what is measured and what must come out.
//
//	Load, Parse   a file to a Scenario: the runs that its variants, its sweep
//	              and its seeds ask for, each with everything set and checked
//	Schema        JSON Schema of the files, for editors
//	Evaluate      the expectations against what was measured
//
// A variant, a sweep, the section short and the command line set keys by
// paths, such as hosts.params.eta, workload[0].size or workload.mice.size
// (the element of a list by its group or name). Errors carry file, line and
// column of what is wrong, whoever set it.
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
// Where the sweep is not pinned, the expectation is evaluated at every point,
// with all its values from that point. Several seeds count by their mean.
//
// What a paper reports and what is known not to come out stands in deviates,
// in the paper's own numbers and with the reason: it is shown as such, and it
// fails where it holds after all.
package scenario
