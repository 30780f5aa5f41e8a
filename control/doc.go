// Package control is the daemon: it puts a configuration into effect, applies changes to
// it, and reports on its state.
//
//	Daemon    the engine with its switches and ports; Start, Apply, Edit, Stop
//	Serve     the API of package control/api and /metrics on the daemon's
//	          listeners
//	Dial      a client, by socket or by the only daemon that runs
//
// The document is the only source of truth. A change through the API changes the
// document, which is then applied like a file: compared with the one in force, checked,
// and only then put into effect. If anything fails, everything stays as it was.
package control
