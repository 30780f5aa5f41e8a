// Package orders holds orders and admissions of egress queues: exact and
// approximate priority queues, fair queueing, and drops.
//
// Each is one file with a comparable value that package scheduler is given
// (scheduler.Order, scheduler.Admission) and the queue that it makes. All go by
// Meta.Rank, the least one first, and by arrival among equals. What is evicted
// where a port pushes out is what would be served last: the greatest rank, and
// the newest among equals; exceptions are said where they stand.
//
// A queue that needs memory makes itself more by doubling it, and keeps it.
package orders
