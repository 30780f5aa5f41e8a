package xsk

// Queued returns how many descriptors in the TX ring the kernel has not yet taken. Unlike
// Outstanding it does not count frames that were sent and have not yet been freed by
// their receiver.
func (s *Socket) Queued() int { return int(s.tx.prod - s.tx.consumed()) }
