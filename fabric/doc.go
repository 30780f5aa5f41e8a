// Package fabric describes networks of hosts and switches, and nothing that
// runs them: a Topology says which nodes there are and which links join them,
// a Plan gives every one of them addresses and routes. Package fabric/lab
// raises a Topology in network namespaces.
//
//	Parse, ParseNode, Load   a YAML section, or a generator such as leaf-spine(2, 4, 2)
//	Topology                 nodes, links, mode; ports are numbered by the order of the links
//	NewPlan                  addresses, MACs, routes: the same for the same Topology, always
//	DOT, Mermaid, ASCII      pictures
//
// Rates are bits per second, delays time.Duration, MTUs bytes of the frame's
// payload after the Ethernet header.
package fabric
