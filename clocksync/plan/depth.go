package plan

// depths fills Depth and BackupDepth (section 3.4.1.4).
//
// A node's backup graph edges lead to the one loop, on which the backup root is.
// Off the loop the deepest way is a hop more than the deepest of the second
// parent's. A node on the loop of L nodes can be reached by its second parent's
// primary path, by that of the one before, and so on, or all along the loop from
// the backup root if the root has failed.
func (p *Plan) depths() {
	n := len(p.Primary)
	p.Depth, p.BackupDepth = make([]int, n), make([]int, n)
	done := make([]bool, n)
	var depth func(i int) int
	depth = func(i int) int {
		if !done[i] {
			done[i] = true
			if p.Primary[i] >= 0 {
				p.Depth[i] = 1 + depth(p.Primary[i])
			}
		}
		return p.Depth[i]
	}
	for i := range n {
		depth(i)
	}
	loop := p.loop()
	on := make([]bool, n)
	for _, i := range loop {
		on[i] = true
	}
	// loop[k+1] is the second parent of loop[k], and loop[0] is the backup root.
	for k, i := range loop {
		most := 0
		for hops := 1; hops < len(loop); hops++ {
			most = max(most, hops+p.Depth[loop[(k+hops)%len(loop)]])
		}
		fromRoot := (len(loop) - k) % len(loop) // hops along the loop from the backup root
		p.BackupDepth[i] = max(most, fromRoot)
	}
	known := make([]bool, n)
	known[p.Root] = true
	for i := range n {
		known[i] = known[i] || on[i]
	}
	var backup func(i int) int
	backup = func(i int) int {
		if !known[i] {
			known[i] = true
			b := p.Backup[i]
			p.BackupDepth[i] = 1 + max(p.Depth[b], backup(b))
		}
		return p.BackupDepth[i]
	}
	for i := range n {
		backup(i)
	}
}

// loop returns the nodes of the backup graph's loop from the backup root against
// the direction of messages.
func (p *Plan) loop() []int {
	out := []int{p.BackupRoot}
	for i := p.Backup[p.BackupRoot]; i != p.BackupRoot && len(out) <= len(p.Primary); i = p.Backup[i] {
		out = append(out, i)
	}
	return out
}
