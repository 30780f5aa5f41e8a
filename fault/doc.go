// Package fault decides what goes wrong on one direction of a link: which
// frames are lost, corrupted, duplicated, delayed. Engines in virtual and in real
// time apply it at the same place, between a sender's port and the link.
package fault
