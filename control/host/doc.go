// Package host is the daemon of a host: it brings a configuration to life,
// serves the API of package control/api (service Host) and /metrics, and runs
// transfers for its callers. The machinery of listeners, privileges and errors
// is that of package control.
package host
