// Package cli is what the command lines of the daemons have in common: errors
// and exit codes, JSON, and the verbs that both have.
//
//	root.go    the root command, what its errors return
//	help.go    pages of help; usage.go  what is said of a wrong command line
//	print.go   JSON, numbers
//	daemon.go  a daemon from its start to its end, reloads
//	apply.go, capture.go, watch.go  verbs
package cli
