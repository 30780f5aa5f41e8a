// Package orders holds orders of egress queues.
//
// Each is one file with a comparable value that package scheduler is given
// (scheduler.Order) and the queue that it makes.
package orders
