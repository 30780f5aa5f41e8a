// Package clocks is the controller of the synchronised clocks of a network's switches: it
// looks at what works, plans which clock follows which, and brings the switches to the plan, make
// before break. Of several controllers one leads, by a lease in JetStream; that no switch
// takes anything of one that was replaced goes by the epochs of plans.
package clocks
