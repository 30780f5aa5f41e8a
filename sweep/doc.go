// Package sweep divides the runs of scenarios among workers, of one machine or of
// many, over a work queue of NATS JetStream.
//
//	coordinator                 JetStream                        worker
//	Sweep.Run ── task ────────> stream of tasks ── one of them ─> Worker
//	          ── scenario ────> object store   ── its files ───> gfabric run, a process
//	          <─ outcome ────── key and value  <── once ───────  of its own
//	          <─ results ────── object store   <── a directory
//
// A task is gone from the queue when its outcome is there. A worker that dies
// before lets another one have the task, after Wait; what is written as an
// outcome is written once, so that no run counts twice. A run that ends, or a
// worker that takes too many tries, without results has an error as its outcome.
//
// Tasks carry the build of the program that they are for, and only workers of
// that build take them: results of another one would not be the same.
package sweep
