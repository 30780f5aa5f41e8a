// Package control is the daemon: it brings a configuration to life, keeps it
// up to date, and says what goes on.
//
//	Daemon    the engine with its switches and ports; Start, Apply, Edit, Stop
//	Serve     the API of package control/api and /metrics on the daemon's
//	          listeners
//	Dial      a client, by socket or by the only daemon that runs
//
// There is one source of truth, the document. What the API changes it changes
// in the document, which is then applied like a file: compared with the one
// in force, tried, and only then put to work. What fails leaves everything as
// it was.
package control
