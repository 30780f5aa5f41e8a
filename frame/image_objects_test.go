package frame

import (
	"bytes"
	"reflect"
	"testing"
)

// kindOf belongs to a program, and is distinguished by where it lies.
type kindOf struct{ name string }

var knownKinds = []*kindOf{{"one"}, {"two"}}

// late is what a node comes to have.
type late struct {
	kind *kindOf
	make func() int
	n    int
}

func (l *late) say() string { return l.kind.name }

// parent has memory that is not its own to show.
type parent struct {
	pool   *Pool
	all    []speaker
	kind   *kindOf
	memory []byte
	part   []byte // of memory
}

func parentImager(p *parent) *Imager {
	im := &Imager{Known: []any{knownKinds[0], knownKinds[1]}, Types: []reflect.Type{reflect.TypeFor[*late]()},
		Remade: []reflect.Type{reflect.TypeFor[func() int]()}, BlankLimit: 100}
	if p != nil {
		im.Blank = [][]byte{nil, make([]byte, 3), p.memory}
	}
	return im
}

// An image of objects that a node came to have is restored into one that has none of them: what
// belongs to the program is that of the program, functions are left out, and memory is there
// without its contents.
func TestImageOfNewObjects(t *testing.T) {
	pool := NewPool(MustArena(4, 256, 64))
	a := &parent{pool: pool, kind: knownKinds[0], memory: []byte("sixteen letters.")}
	a.part = a.memory[4:8]
	a.all = []speaker{&late{kind: knownKinds[1], make: func() int { return 7 }, n: 5}}
	image, err := parentImager(a).Append(nil, a, pool)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(image, []byte("sixteen")) {
		t.Error("what memory holds stands in the image")
	}
	b := &parent{pool: pool, kind: knownKinds[1]}
	if err := parentImager(nil).Restore(image, b, pool); err != nil {
		t.Fatal(err)
	}
	l := b.all[0].(*late)
	if l.kind != knownKinds[1] || b.kind != knownKinds[0] || l.n != 5 || l.make != nil || l.say() != "two" {
		t.Errorf("it comes back as %+v of %p", l, b.kind)
	}
	if len(b.memory) != 16 || !bytes.Equal(b.memory, make([]byte, 16)) || len(b.part) != 4 || &b.part[0] != &b.memory[4] {
		t.Errorf("memory comes back as %q, and a part of it as %q", b.memory, b.part)
	}
	for name, im := range map[string]*Imager{
		"knows fewer kinds":      {Known: []any{knownKinds[0]}, Types: parentImager(nil).Types, Remade: parentImager(nil).Remade, BlankLimit: 100},
		"does not know the type": {Known: parentImager(nil).Known, Remade: parentImager(nil).Remade, BlankLimit: 100},
		"makes no functions":     {Known: parentImager(nil).Known, Types: parentImager(nil).Types, BlankLimit: 100},
		"has no room":            {Known: parentImager(nil).Known, Types: parentImager(nil).Types, Remade: parentImager(nil).Remade, BlankLimit: 15},
	} {
		if err := im.Restore(image, &parent{pool: pool}, pool); err == nil {
			t.Errorf("a program that %s restores it", name)
		}
	}
}
