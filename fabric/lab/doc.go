// Package lab raises a fabric.Topology on this machine: every host is a
// network namespace with the kernel's own stack, the switches are gswitch
// processes in a namespace of the fabric, and veth pairs join them.
//
//	NewLayout      what will be made, from a plan: namespaces, veth pairs, processes
//	Up, Down       make it, remove it
//	Inspect, List  what is there
//	Command, Exec  run a program in a host
//
// Nothing of a fabric lies outside its own namespaces but the namespaces'
// names, the processes and one folder under /run/gfabric. All of these carry
// the fabric's token, a random word that is written to the folder before
// anything else is made. Whoever cleans up compares tokens: what does not
// bear the token was not made by the fabric and is left alone. This is why a
// lab that was killed at any moment can be removed, wholly and without
// touching anything else.
package lab
