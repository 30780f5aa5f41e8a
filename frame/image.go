package frame

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"unsafe"
)

// An image is the state of a node at an instant: all values that can be reached
// from it, and the frames that it holds. Restored into a node that was made from
// the same configuration by the same program it makes that node go on as the
// first one does.
//
// A node has functions (the stages of features) that know the object whose
// methods they are. They are not part of an image. So an image is written over
// the objects of the node that is there, as far as both have them in the same
// place, and others are made new.
//
//	regions  count, of each: type, twice the elements, plus 1 if it is blank; then the
//	         contents of each that is not
//	frames   count, of each: number, Meta, length, bytes
//	types    count, of each: name, size
//	where the types begin, 8 bytes, big-endian
//
// Other numbers are uvarints. A region is memory that pointers lead to: one object, or
// an array of them. Pointers are the number of a region and an offset.

// Imager takes and restores images of nodes.
type Imager struct {
	// Kept are types of pointers that stay what they are when an image is
	// restored: to what belongs to the program rather than to the node.
	// Those to an Arena, a Pool or a Depot are always.
	Kept []reflect.Type

	// Known are pointers to what belongs to the program, in an order that the program has
	// always: an image says which one of them a pointer is.
	Known []any

	// Types are those of objects that a node may come to have, which one that was just made
	// does not.
	Types []reflect.Type

	// Remade are types of functions that objects lack which are made new: who restores an
	// image makes them, too.
	Remade []reflect.Type

	// Blank is memory whose contents are no part of an image. Where it is restored anew it
	// is zero. BlankLimit is how many bytes of it there may be in an image.
	Blank      [][]byte
	BlankLimit uint64

	// Bytes returns how many bytes of a frame are part of an image, from its
	// front: the rest is zero when it is restored.
	Bytes func(frame []byte) int

	// Elsewhere calls f with the chunks that are held by neither the node nor the pool,
	// but by links below it, drivers or other nodes. nil: there are none.
	Elsewhere func(f func(chunk Ref))
}

// region is memory that pointers lead to: n values of a type.
type region struct {
	at unsafe.Pointer
	*layout
	n     int
	blank bool
}

func (r *region) end() uintptr { return uintptr(r.at) + r.t.Size()*uintptr(r.n) }

// graph is all that can be reached from an object.
type graph struct {
	*layouts
	regions []region
	refs    map[Ref]bool
	maps    map[unsafe.Pointer]bool
	seen    map[region]bool
	todo    []region
}

// sliceHeader is how a slice lies in memory.
type sliceHeader struct {
	at       unsafe.Pointer
	len, cap int
}

func (im *Imager) reach(root any) (*graph, error) {
	v := reflect.ValueOf(root)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, fmt.Errorf("an image is taken of what a pointer leads to, not of %T", root)
	}
	g := &graph{layouts: newLayouts(im), refs: map[Ref]bool{}, maps: map[unsafe.Pointer]bool{}, seen: map[region]bool{}}
	g.reach(v.UnsafePointer(), g.of(v.Type().Elem()), 1)
	for len(g.todo) > 0 {
		r := g.todo[len(g.todo)-1]
		g.todo = g.todo[:len(g.todo)-1]
		if r.shape != plainShape || r.refs {
			for i := range r.n {
				g.visit(unsafe.Add(r.at, uintptr(i)*r.t.Size()), r.layout)
			}
		}
	}
	return g, g.merge()
}

// reach notes memory that a pointer leads to.
func (g *graph) reach(at unsafe.Pointer, l *layout, n int) {
	if r := (region{at: at, layout: l, n: n}); at != nil && n > 0 && l.t.Size() > 0 && !g.seen[r] {
		g.seen[r] = true
		g.regions, g.todo = append(g.regions, r), append(g.todo, r)
	}
}

// visit finds the pointers and frames in a value.
func (g *graph) visit(at unsafe.Pointer, l *layout) {
	switch l.shape {
	case plainShape:
		if l.refs {
			g.frames(at, l)
		}
	case structShape:
		for _, f := range l.fields {
			g.visit(unsafe.Add(at, f.offset), f.layout)
		}
	case arrayShape:
		for i := range l.n {
			g.visit(unsafe.Add(at, uintptr(i)*l.elem.t.Size()), l.elem)
		}
	case pointerShape:
		g.reach(*(*unsafe.Pointer)(at), l.elem, 1)
	case sliceShape:
		s := (*sliceHeader)(at)
		g.reach(s.at, l.elem, s.cap)
	case mapShape:
		if v := reflect.NewAt(l.t, at).Elem(); !v.IsNil() && !g.maps[v.UnsafePointer()] {
			g.maps[v.UnsafePointer()] = true
			for it := v.MapRange(); it.Next(); {
				g.visit(boxed(it.Key()), l.key)
				g.visit(boxed(it.Value()), l.elem)
			}
		}
	case ifaceShape:
		if v := reflect.NewAt(l.t, at).Elem(); !v.IsNil() {
			g.visit(boxed(v.Elem()), g.of(v.Elem().Type()))
		}
	}
}

// boxed returns a copy of a value in memory of its own.
func boxed(v reflect.Value) unsafe.Pointer {
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.UnsafePointer()
}

// frames finds the frames in memory without pointers.
func (g *graph) frames(at unsafe.Pointer, l *layout) {
	switch {
	case !l.refs:
	case l.t == refType:
		g.refs[*(*Ref)(at)] = true
	case l.elem != nil:
		for i := range l.n {
			g.frames(unsafe.Add(at, uintptr(i)*l.elem.t.Size()), l.elem)
		}
	default:
		for _, f := range l.fields {
			g.frames(unsafe.Add(at, f.offset), f.layout)
		}
	}
}

// merge leaves the regions that lie in no other, by address.
func (g *graph) merge() error {
	slices.SortFunc(g.regions, func(a, b region) int {
		return cmp.Or(cmp.Compare(uintptr(a.at), uintptr(b.at)), cmp.Compare(b.end(), a.end()))
	})
	var all []region
	for _, r := range g.regions {
		if k := len(all) - 1; k >= 0 && uintptr(r.at) < all[k].end() {
			if r.end() > all[k].end() {
				return fmt.Errorf("an image of %v and %v, which overlap, is impossible", &all[k], &r)
			}
			if r.at == all[k].at && r.end() == all[k].end() && !all[k].holds(all[k].n, 0, r.layout, r.n) {
				all[k] = r // it is what the other one consists of, and nothing else
			}
			continue
		}
		all = append(all, r)
	}
	g.regions = all
	return nil
}

// blanks notes which regions have contents that are no part of an image.
func (g *graph) blanks(memory [][]byte) {
	for _, b := range memory {
		if len(b) == 0 {
			continue
		}
		at := unsafe.Pointer(unsafe.SliceData(b))
		if uintptr(at) < uintptr(g.regions[0].at) {
			continue
		}
		n, offset := g.find(at)
		if r := &g.regions[n]; r.t.Kind() == reflect.Uint8 && uintptr(at)+uintptr(len(b)) <= r.end() && offset == 0 {
			r.blank = true
		}
	}
}

// find returns the region in which an address lies, and its offset there.
func (g *graph) find(at unsafe.Pointer) (n int, offset uintptr) {
	n, found := slices.BinarySearchFunc(g.regions, uintptr(at), func(r region, at uintptr) int { return cmp.Compare(uintptr(r.at), at) })
	if !found {
		n--
	}
	return n, uintptr(at) - uintptr(g.regions[n].at)
}

// imageWriter writes an image.
type imageWriter struct {
	*graph
	b     []byte
	types map[*layout]uint64
	names []*layout
	maps  map[unsafe.Pointer]uint64
}

// Append appends an image of what root, a pointer, leads to, and of the frames that are
// found there, which it allocates from pool. Nothing of it may change meanwhile.
func (im *Imager) Append(b []byte, root any, pool *Pool) ([]byte, error) {
	g, err := im.reach(root)
	if err != nil {
		return b, err
	}
	w := &imageWriter{graph: g, types: map[*layout]uint64{}, maps: map[unsafe.Pointer]uint64{}}
	g.blanks(im.Blank)
	room := uintptr(0)
	for i := range g.regions {
		if r := &g.regions[i]; !r.blank {
			room += r.t.Size() * uintptr(r.n)
		}
	}
	w.b = slices.Grow(b, int(room+room/4))
	w.uvarint(uint64(len(g.regions)))
	for i := range g.regions {
		r := &g.regions[i]
		w.uvarint(w.typeOf(r.layout))
		blank := uint64(0)
		if r.blank {
			blank = 1
		}
		w.uvarint(uint64(r.n)<<1 | blank)
	}
	first, _ := g.find(reflect.ValueOf(root).UnsafePointer())
	w.uvarint(uint64(first))
	for i := range g.regions {
		r := &g.regions[i]
		switch {
		case r.blank:
			continue
		case r.shape == plainShape:
			w.bytes(r.at, r.t.Size()*uintptr(r.n))
			continue
		}
		for i := range r.n {
			w.value(unsafe.Add(r.at, uintptr(i)*r.t.Size()), r.layout)
		}
	}
	w.chunks(im, pool)
	types := len(w.b) - len(b)
	w.uvarint(uint64(len(w.names)))
	for _, l := range w.names {
		name := typeName(l.t)
		w.uvarint(uint64(len(name)))
		w.b = append(w.b, name...)
		w.uvarint(uint64(l.t.Size()))
	}
	return binary.BigEndian.AppendUint64(w.b, uint64(types)), nil
}

func (w *imageWriter) uvarint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *imageWriter) bytes(at unsafe.Pointer, n uintptr) {
	w.b = append(w.b, unsafe.Slice((*byte)(at), n)...)
}

func (w *imageWriter) typeOf(l *layout) uint64 {
	n, known := w.types[l]
	if !known {
		n = uint64(len(w.names))
		w.types[l], w.names = n, append(w.names, l)
	}
	return n
}

// pointer writes where a pointer leads: 0 nowhere, 1 to nothing that has a size.
func (w *imageWriter) pointer(at unsafe.Pointer, sized bool) bool {
	switch {
	case at == nil:
		w.uvarint(0)
	case !sized:
		w.uvarint(1)
	default:
		n, offset := w.find(at)
		w.uvarint(uint64(n) + 2)
		w.uvarint(uint64(offset))
		return true
	}
	return false
}

func (w *imageWriter) value(at unsafe.Pointer, l *layout) {
	switch l.shape {
	case plainShape:
		w.bytes(at, l.t.Size())
	case structShape:
		for _, f := range l.fields {
			w.value(unsafe.Add(at, f.offset), f.layout)
		}
	case arrayShape:
		for i := range l.n {
			w.value(unsafe.Add(at, uintptr(i)*l.elem.t.Size()), l.elem)
		}
	case pointerShape:
		w.pointer(*(*unsafe.Pointer)(at), l.elem.t.Size() > 0)
	case sliceShape:
		s := (*sliceHeader)(at)
		if w.pointer(s.at, s.cap > 0 && l.elem.t.Size() > 0) {
			w.uvarint(uint64(s.cap))
		}
		w.uvarint(uint64(s.len))
	case stringShape:
		s := *(*string)(at)
		w.uvarint(uint64(len(s)))
		w.b = append(w.b, s...)
	case addrShape:
		text, _ := (*netip.Addr)(at).MarshalBinary() // never fails
		w.uvarint(uint64(len(text)))
		w.b = append(w.b, text...)
	case mapShape:
		w.mapping(reflect.NewAt(l.t, at).Elem(), l)
	case ifaceShape:
		if v := reflect.NewAt(l.t, at).Elem(); v.IsNil() {
			w.uvarint(0)
		} else {
			x := w.of(v.Elem().Type())
			w.uvarint(w.typeOf(x) + 1)
			w.value(boxed(v.Elem()), x)
		}
	case keptShape:
		there := uint64(0)
		if p := *(*unsafe.Pointer)(at); p != nil {
			there = 1
			if i := w.numberOf(l.t, p); i >= 0 {
				there = uint64(i) + 2
			}
		}
		w.uvarint(there)
	}
}

// mapping writes a map: 0 nil, 1 with its contents, which gives it the next
// number, 2 the one of a number.
func (w *imageWriter) mapping(v reflect.Value, l *layout) {
	if v.IsNil() {
		w.uvarint(0)
		return
	}
	if n, known := w.maps[v.UnsafePointer()]; known {
		w.uvarint(2)
		w.uvarint(n)
		return
	}
	w.maps[v.UnsafePointer()] = uint64(len(w.maps))
	w.uvarint(1)
	w.uvarint(uint64(v.Len()))
	for it := v.MapRange(); it.Next(); {
		w.value(boxed(it.Key()), l.key)
		w.value(boxed(it.Value()), l.elem)
	}
}

// chunks writes the frames that were found and those that are linked to them, and not what
// is free or somebody else's: queues and links still name chunks that left the node. Those
// would be held for good in what is restored, whose allocations failed where those of the
// first one did not.
func (w *imageWriter) chunks(im *Imager, pool *Pool) {
	a := pool.Arena
	var all []Ref
	seen, chained := pool.unused(), map[Ref]bool{}
	if im.Elsewhere != nil {
		im.Elsewhere(seen.add)
	}
	todo := slices.Sorted(maps.Keys(w.refs))
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if int(r) >= a.Chunks() || seen.has(r) { // what is no frame, or any more
			continue
		}
		seen.add(r)
		all = append(all, r)
		m := a.Meta(r)
		chained[m.Next] = true
		todo = append(todo, m.Next, m.QNext, m.QPrev, Ref(m.Rank)) // some orders link by Rank
	}
	w.uvarint(uint64(len(all)))
	for _, r := range all {
		w.uvarint(uint64(r))
		m := a.Meta(r)
		w.bytes(unsafe.Pointer(m), unsafe.Sizeof(*m))
		n := 0
		if !chained[r] && int(m.Head)+int(m.Len) <= a.ChunkSize() {
			n = min(im.Bytes(a.Bytes(r)), int(m.Len))
		}
		w.uvarint(uint64(n))
		if n > 0 {
			w.b = append(w.b, a.Bytes(r)[:n]...)
		}
	}
}

var errImage = errors.New("the image is damaged")
