package xsk

// Queued returns how many descriptors lie in the TX ring that the kernel has
// not yet taken. Unlike Outstanding it does not count what was sent and waits
// to be freed by its receiver.
func (s *Socket) Queued() int { return int(s.tx.prod - s.tx.consumed()) }
