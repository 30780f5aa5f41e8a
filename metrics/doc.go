// Package metrics reads what the workers and nodes of a daemon count and
// exposes it to Prometheus.
//
//	Take       one Snapshot of everything; also what "show" is made of
//	Collector  a prometheus.Collector over snapshots
//
// The counters are plain words of the workers, so they are copied by the
// workers: a few ports at a time, between two vectors. A snapshot never holds
// a worker for longer than that, and a scrape takes one snapshot.
package metrics
