package vswitch

// neighborShare is what a port has of the neighbour table: an entry without a
// MAC is on account of the port whose frame made the switch ask, another one
// on that of the port by which the neighbour's last message came.
type neighborShare struct{ entries, unresolved int }

// share returns the account of a port, or of what is of no port.
func (l *local) share(port uint16) *neighborShare { return &l.shares[min(port, MaxPorts)] }

// full reports whether the table has no room for one more entry of a port.
func (l *local) full(port uint16) bool {
	return len(l.table) >= MaxNeighbors || port < MaxPorts && l.shares[port].entries >= NeighborsPerPort
}

// charge puts a neighbour on account of another port.
func (l *local) charge(nb *neighbor, port uint16) {
	l.count(nb, -1)
	nb.port = port
	l.count(nb, 1)
}

// count adds a neighbour to the account that it is on (n = 1), or takes it out
// (n = -1).
func (l *local) count(nb *neighbor, n int) {
	s := l.share(nb.port)
	s.entries += n
	if !nb.state.resolved() {
		s.unresolved += n
	}
}
