// Package sim steps the nodes of a network in virtual time.
package sim
