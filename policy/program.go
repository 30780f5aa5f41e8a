package policy

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Program is a compiled policy. It does not change, and any number of engines run
// it.
type Program struct {
	Name     string // of the policy statement, or empty
	Warnings Errors // what is valid and hardly meant

	text                           string
	queues                         []queueProgram
	buffers                        []bufferProgram
	port                           string
	parts                          []*Program // of each port, where there are several; nil: there is one
	value, processing, slack, flow code       // nil: as the frame says
	sched                          order
	served                         []condition
	turns                          bool    // service changes schedState: a queue that comes back gets no arrears
	selects                        code    // nil: there is one queue
	share                          float64 // of the link's rate
	rate                           uint64  // bit/s, 0: share says
	drops                          bool
	bytes                          bool
	random                         bool
}

type queueProgram struct {
	name                                         string
	size                                         int64
	packets                                      bool
	buffer                                       int // -1: none
	proc, adm                                    order
	congestion, post                             []condition
	weightAdm, weightSched, admState, schedState int64
}

type bufferProgram struct {
	name             string
	size             int64
	packets          bool
	queues           uint64
	members          int // queues of all ports
	span             int // from 1: number of a buffer that queues of several ports share; 0: it is this port's
	prio             order
	congestion, post []condition
}

// Compile reads and verifies a text. name stands in errors, which are of type
// Errors.
func Compile(name, text string) (*Program, error) { return load(name, text, true) }

// Ports returns how many ports a text has that Compile has taken.
func Ports(text string) int {
	f, err := parse("", text)
	if err != nil {
		return 1
	}
	n := 0
	for _, o := range f.objects {
		if o.kind == "Port" {
			n++
		}
	}
	return max(n, 1)
}

// Drops reports whether the policy ever drops a packet: it must not where a class
// is lossless.
func (p *Program) Drops() bool { return p.drops || p.slack != nil }

// NeedsBytes reports whether the policy reads what stands in frames and not in
// their metadata, so that it cannot be a shadow.
func (p *Program) NeedsBytes() bool { return p.bytes }

// Parts returns the programs of the ports, in the order of the text: p itself where
// there is one.
func (p *Program) Parts() []*Program {
	if p.parts == nil {
		return []*Program{p}
	}
	return p.parts
}

// spans reports whether a queue shares a buffer with queues of other ports.
func (p *Program) spans() bool {
	return slices.ContainsFunc(p.buffers, func(b bufferProgram) bool { return b.span > 0 })
}

// Spans reports whether queues of several ports share a buffer: the ports must be of
// one worker.
func (p *Program) Spans() bool { return slices.ContainsFunc(p.parts, (*Program).spans) }

// Queues returns the names of the queues.
func (p *Program) Queues() (names []string) {
	for _, part := range p.Parts() {
		for i := range part.queues {
			names = append(names, part.queues[i].name)
		}
	}
	return names
}

// Describe lists what the text was compiled to, a line for each thing: the structure of
// each queue and what a packet costs at most with so many queued, as Bound says.
func (p *Program) Describe() (out []string) {
	for _, part := range p.Parts() {
		out = append(out, part.describe()...)
	}
	return out
}

func (p *Program) describe() []string {
	first := fmt.Sprintf("%s, %s, port %s", count(len(p.queues), "queue"), count(len(p.buffers), "shared buffer"), p.port)
	if p.spans() {
		first += ", which shares with other ports"
	}
	out := []string{first}
	for i := 0; i < len(p.queues); {
		j := i
		for j+1 < len(p.queues) && p.queues[j+1].structure() == p.queues[i].structure() {
			j++
		}
		name := p.queues[i].name
		if j > i {
			name += " to " + p.queues[j].name
		}
		out = append(out, name+": "+p.queues[i].structure())
		i = j + 1
	}
	return append(out, fmt.Sprintf("%s: %s among %s", p.port, p.sched.name, count(len(p.queues), "queue")))
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (q *queueProgram) structure() string {
	unit := "bytes"
	if q.packets {
		unit = "packets"
	}
	return fmt.Sprintf("%d %s, served by %s (%s), gives up by %s (%s)", q.size, unit, q.proc.name, q.proc.kind, q.adm.name, q.adm.kind)
}

func (k orderKind) String() string {
	return [...]string{"list", "list, newest first", "lists by value", "heap by a key", "heap by the comparator"}[k]
}

// What parts of a frame's way cost, in ns: measured on a processor of 2.5 GHz or so
// with a thousand packets queued (BenchmarkEngine), and rounded up.
const (
	costFrame   = 45 // attributes, slot, choice of the queue
	costLevels  = 8
	costHeap    = 4  // for each level of a heap of keys
	costCompare = 18 // for each level of a heap that evaluates the comparator, and 2 for each step of the comparator
	costStep    = 2  // of an expression
	costQueue   = 3  // for each queue that is looked at, and its comparator
)

// Bound returns about how many ns of a processor a packet costs at most with so many
// queued.
func (p *Program) Bound(queued int) (most int) {
	for _, part := range p.Parts() {
		most = max(most, part.bound(queued))
	}
	return most
}

func (p *Program) bound(queued int) int {
	n := costFrame + costStep*(len(p.value)+len(p.processing)+len(p.slack)+len(p.flow)+len(p.selects))
	worst := 0
	for i := range p.queues {
		q := &p.queues[i]
		c := q.proc.cost(queued) + q.adm.cost(queued) + conditionsCost(q.congestion) + conditionsCost(q.post)
		if q.buffer >= 0 {
			b := &p.buffers[q.buffer]
			c += conditionsCost(b.congestion) + b.members*(costQueue+2*costStep*len(b.prio.cmp))
		}
		worst = max(worst, c)
	}
	n += worst + conditionsCost(p.served)
	if len(p.queues) > 1 {
		n += len(p.queues) * (costQueue + 2*costStep*len(p.sched.cmp))
	}
	return n
}

func (o *order) cost(queued int) int {
	depth := bits.Len(uint(queued))
	switch o.kind {
	case byLevels:
		return costLevels + costStep*len(o.key)
	case byKey:
		return costHeap*depth + costStep*len(o.key)
	case byCompare:
		return depth * (costCompare + 2*costStep*len(o.cmp))
	}
	return 0
}

func conditionsCost(list []condition) (n int) {
	for i := range list {
		n += costStep * len(list[i].when)
		for _, m := range list[i].modify {
			n += costStep * len(m.by)
		}
	}
	return n
}

// String names the policy for listings.
func (p *Program) String() string {
	name := p.Name
	if name == "" {
		names := p.Queues()
		name = strings.Join(names[:min(len(names), 3)], ",")
	}
	return "policy(" + name + ")"
}
