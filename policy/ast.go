package policy

import "math/big"

// file is a text as it was read.
type file struct {
	name     string
	text     string // name of the text, for errors
	consts   map[string]*expr
	classify map[string]*expr // value, processing, slack, flow
	defs     map[string]*def
	objects  []*object
	byName   map[string]*object
	sizes    map[*object]int64 // of queues and buffers, once they are known
	dialect  bool              // of the Linux prototype, by its import
	bytes    bool              // fields are read that stand in the bytes of frames
	random   bool              // each packet draws a number
}

// def is a comparator (two parameters) or a boundary condition (one or none).
type def struct {
	name   string
	pos    Pos
	params []string
	cond   *expr   // of a comparator
	cases  []*acts // of a boundary condition
}

// acts is a case of a boundary condition.
type acts struct {
	cond *expr
	list []*action
}

// action is one action: drop, mark, notify or modify.
type action struct {
	pos  Pos
	verb string
	prob *big.Rat // of drop, 0 to 1
	to   string   // of modify: the field
	by   *expr
}

// object is a queue, a buffer or a port.
type object struct {
	kind, name string
	pos        Pos
	size       *expr // of queues and buffers
	packets    bool  // size counts packets
	rate       *expr // of ports: a share of the link's rate
	queues     []*object
	attrs      map[string]*assign
}

// assign gives an object an attribute: a def by name, an expression, or a def of
// its own.
type assign struct {
	object *object
	attr   string
	pos    Pos
	name   string // of a def
	expr   *expr
}

// expr is an arithmetic or Boolean expression.
type expr struct {
	op   string // "num", "path", "neg", "not", or an operator
	pos  Pos
	num  *big.Rat
	path []string
	unit string
	l, r *expr
}
