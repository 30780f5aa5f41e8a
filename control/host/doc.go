// Package host is the daemon of hosts: it puts a configuration into effect, serves the
// API of package control/api (service Host) and /metrics, and runs transfers for its
// callers. It shares listeners, privileges and errors with package control.
package host
