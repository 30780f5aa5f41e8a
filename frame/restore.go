package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"unsafe"
)

// imageReader restores an image.
type imageReader struct {
	*graph // of the node that is there
	pool   *Pool
	b      []byte
	err    error
	types  []*layout
	to     []region // where each region goes; at is nil while that is not known
	ready  []int    // regions that have an object of the node, and were not looked at for more
	used   map[unsafe.Pointer]bool
	maps   []reflect.Value
}

// A value of an image is read three times: to find where the next one begins, to find
// which objects of the node it stands for, and to restore it.
type pass uint8

const (
	skipping pass = iota
	binding
	setting
)

// Restore makes what root, a pointer, leads to what it was when the image was
// taken, with the frames in the pool's arena, which must be as large. The node
// must have been made from the configuration that was in force. On error it
// must not be used.
func (im *Imager) Restore(b []byte, root any, pool *Pool) error {
	g, err := im.reach(root)
	if err != nil {
		return err
	}
	r := &imageReader{graph: g, pool: pool, b: b, used: map[unsafe.Pointer]bool{}}
	first := r.head(im.BlankLimit)
	if r.err != nil {
		return r.err
	}
	if x := &r.to[first]; x.t != reflect.TypeOf(root).Elem() || x.n != 1 {
		return fmt.Errorf("the image is of %v, not of %T", x, root)
	}
	starts := make([][]byte, len(r.to))
	for i := range r.to {
		starts[i] = r.b
		r.region(i, skipping)
	}
	frames := r.b
	r.bind(first, reflect.ValueOf(root).UnsafePointer())
	for len(r.ready) > 0 {
		i := r.ready[0]
		r.ready = r.ready[1:]
		r.b = starts[i]
		r.region(i, binding)
	}
	if r.err != nil {
		return r.err
	}
	for i := range r.to {
		if x := &r.to[i]; x.at == nil {
			x.at = reflect.MakeSlice(reflect.SliceOf(x.t), x.n, x.n).UnsafePointer()
		}
	}
	for i := range r.to {
		r.b = starts[i]
		r.region(i, setting)
	}
	r.b = frames
	r.chunks()
	return r.err
}

func (r *imageReader) damaged() {
	if r.err == nil {
		r.err = errImage
	}
	r.b = nil
}

func (r *imageReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.damaged()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// uvarint reads a number below most.
func (r *imageReader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v >= most {
		r.damaged()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// mostOf bounds counts of what is at least a byte each.
func (r *imageReader) mostOf() uint64 { return uint64(len(r.b)) + 1 }

// head reads types and regions, of which so many bytes may be blank, and returns which
// region the root is.
func (r *imageReader) head(blanks uint64) int {
	whole, at := r.b, uint64(0)
	if len(whole) >= 8 {
		at = binary.BigEndian.Uint64(whole[len(whole)-8:])
	}
	if at == 0 || at > uint64(len(whole)-8) {
		r.damaged()
		return 0
	}
	r.b = whole[at : len(whole)-8]
	for n := r.uvarint(r.mostOf()); n > 0 && r.err == nil; n-- {
		name := string(r.take(r.uvarint(r.mostOf())))
		l, size := r.byName[name], r.uvarint(1<<40)
		if l == nil || uint64(l.t.Size()) != size {
			r.err = errors.Join(r.err, fmt.Errorf("the image holds a %s of %d bytes, which the node that is to take it does not know", name, size))
			return 0
		}
		r.types = append(r.types, l)
	}
	if r.err != nil {
		return 0
	}
	r.b = whole[:at]
	for n := r.uvarint(r.mostOf()); n > 0 && r.err == nil; n-- {
		t := r.uvarint(uint64(len(r.types)))
		count := r.uvarint(1 << 40)
		if blank := count&1 != 0; r.err == nil {
			if blank && (r.types[t].t.Kind() != reflect.Uint8 || count>>1 > blanks) || !blank && count>>1 >= r.mostOf() {
				r.damaged()
				return 0
			}
			if blank {
				blanks -= count >> 1
			}
			r.to = append(r.to, region{layout: r.types[t], n: int(count >> 1), blank: blank})
		}
	}
	return int(r.uvarint(uint64(len(r.to))))
}

func (r *imageReader) region(i int, p pass) {
	x := &r.to[i]
	if x.blank {
		return
	}
	if x.shape == plainShape {
		if b := r.take(uint64(x.t.Size()) * uint64(x.n)); p == setting && b != nil {
			copy(unsafe.Slice((*byte)(x.at), len(b)), b)
		}
		return
	}
	for k := range x.n {
		if r.err != nil {
			return
		}
		at := unsafe.Pointer(nil)
		if p != skipping {
			at = unsafe.Add(x.at, uintptr(k)*x.t.Size())
		}
		r.value(at, x.layout, p)
	}
}

// bind makes a region stand for the object of the node that a pointer in the same
// place leads to, if that is of the same kind.
func (r *imageReader) bind(i int, at unsafe.Pointer) {
	x := &r.to[i]
	if x.at != nil || at == nil || r.used[at] {
		return
	}
	k, offset := r.find(at)
	if k < 0 || offset != 0 || r.regions[k].layout != x.layout || r.regions[k].n != x.n {
		return
	}
	x.at, r.used[at] = at, true
	r.ready = append(r.ready, i)
}

// pointer reads where a pointer to values of a type leads: to so many, if count is
// not 0, else it reads how many.
func (r *imageReader) pointer(has unsafe.Pointer, l *layout, count int, p pass) (at unsafe.Pointer, room int) {
	n := r.uvarint(uint64(len(r.to)) + 2)
	switch {
	case n == 0:
		return nil, 0
	case n == 1:
		if l.t.Size() > 0 && count > 0 {
			r.damaged()
		}
		return unsafe.Pointer(&nothing), 0
	}
	x := &r.to[n-2]
	offset := r.uvarint(uint64(x.t.Size()) * uint64(x.n))
	if count == 0 {
		count = int(r.uvarint(1 << 40))
	}
	if count == 0 || !x.holds(x.n, uintptr(offset), l, count) {
		r.damaged()
		return nil, 0
	}
	if p == binding && offset == 0 {
		r.bind(int(n-2), has)
	}
	if p == setting {
		at = unsafe.Add(x.at, offset)
	}
	return at, count
}

// nothing is what pointers to nothing that has a size lead to.
var nothing struct{}

func (r *imageReader) value(at unsafe.Pointer, l *layout, p pass) {
	switch l.shape {
	case plainShape:
		if b := r.take(uint64(l.t.Size())); p == setting && b != nil {
			copy(unsafe.Slice((*byte)(at), l.t.Size()), b)
		}
	case structShape:
		for _, f := range l.fields {
			r.value(inside(at, f.offset, p), f.layout, p)
		}
	case arrayShape:
		for i := range l.n {
			r.value(inside(at, uintptr(i)*l.elem.t.Size(), p), l.elem, p)
		}
	case pointerShape:
		has := unsafe.Pointer(nil)
		if p == binding {
			has = *(*unsafe.Pointer)(at)
		}
		if to, _ := r.pointer(has, l.elem, 1, p); p == setting {
			*(*unsafe.Pointer)(at) = to
		}
	case sliceShape:
		r.slice(at, l, p)
	case stringShape:
		if b := r.take(r.uvarint(r.mostOf())); p == setting {
			*(*string)(at) = string(b)
		}
	case addrShape:
		if b := r.take(r.uvarint(r.mostOf())); p == setting && (*netip.Addr)(at).UnmarshalBinary(b) != nil {
			r.damaged()
		}
	case mapShape:
		r.mapping(at, l, p)
	case ifaceShape:
		r.iface(at, l, p)
	case keptShape:
		if there := r.uvarint(uint64(len(r.known)) + 2); p == setting && there == 1 {
			r.keep(at, l)
		} else if p == setting && there > 1 {
			r.name(at, l, int(there-2))
		}
	}
}

// keep leaves something as it is. What is new gets the memory of the node that is
// there.
func (r *imageReader) keep(at unsafe.Pointer, l *layout) {
	p := (*unsafe.Pointer)(at)
	switch {
	case *p != nil || slices.Contains(r.remade, l.t):
	case l.t == reflect.TypeFor[*Pool]():
		*p = unsafe.Pointer(r.pool)
	case l.t == reflect.TypeFor[*Arena]():
		*p = unsafe.Pointer(r.pool.Arena)
	default:
		r.err = errors.Join(r.err, fmt.Errorf("the image needs a %v that the node does not have", l))
	}
}

// name makes a pointer the one to what is known.
func (r *imageReader) name(at unsafe.Pointer, l *layout, i int) {
	if v := r.known[i]; v.Type() == l.t {
		*(*unsafe.Pointer)(at) = v.UnsafePointer()
		return
	}
	r.damaged()
}

func inside(at unsafe.Pointer, offset uintptr, p pass) unsafe.Pointer {
	if p == skipping {
		return nil
	}
	return unsafe.Add(at, offset)
}

func (r *imageReader) slice(at unsafe.Pointer, l *layout, p pass) {
	has := unsafe.Pointer(nil)
	if p == binding {
		has = (*sliceHeader)(at).at
	}
	to, room := r.pointer(has, l.elem, 0, p)
	n := int(r.uvarint(1 << 40))
	if n > room && (l.elem.t.Size() > 0 || to == nil) {
		r.damaged()
	}
	if p == setting && r.err == nil {
		*(*sliceHeader)(at) = sliceHeader{to, n, max(n, room)}
	}
}

func (r *imageReader) mapping(at unsafe.Pointer, l *layout, p pass) {
	v := reflect.Value{}
	if p == setting {
		v = reflect.NewAt(l.t, at).Elem()
	}
	switch r.uvarint(3) {
	case 0:
		if p == setting {
			v.SetZero()
		}
		return
	case 2:
		n := r.uvarint(1 << 32)
		if p != setting {
			return
		}
		if n >= uint64(len(r.maps)) || r.maps[n].Type() != l.t {
			r.damaged()
			return
		}
		v.Set(r.maps[n])
		return
	}
	n := r.uvarint(r.mostOf())
	if p != setting {
		for ; n > 0 && r.err == nil; n-- {
			r.value(nil, l.key, skipping)
			r.value(nil, l.elem, skipping)
		}
		return
	}
	if v.IsNil() || r.used[v.UnsafePointer()] {
		v.Set(reflect.MakeMapWithSize(l.t, int(n)))
	} else {
		v.Clear()
	}
	r.used[v.UnsafePointer()] = true
	r.maps = append(r.maps, reflect.ValueOf(v.Interface()))
	for ; n > 0 && r.err == nil; n-- {
		key, value := reflect.New(l.key.t), reflect.New(l.elem.t)
		r.value(key.UnsafePointer(), l.key, setting)
		r.value(value.UnsafePointer(), l.elem, setting)
		if r.err == nil {
			v.SetMapIndex(key.Elem(), value.Elem())
		}
	}
}

func (r *imageReader) iface(at unsafe.Pointer, l *layout, p pass) {
	n := r.uvarint(uint64(len(r.types)) + 1)
	if r.err != nil {
		return
	}
	v := reflect.Value{}
	if p != skipping {
		v = reflect.NewAt(l.t, at).Elem()
	}
	if n == 0 {
		if p == setting {
			v.SetZero()
		}
		return
	}
	x := r.types[n-1]
	if p == skipping {
		r.value(nil, x, p)
		return
	}
	if !x.t.AssignableTo(l.t) {
		r.damaged()
		return
	}
	box := reflect.New(x.t)
	same := !v.IsNil() && v.Elem().Type() == x.t
	if same {
		box.Elem().Set(v.Elem())
	}
	if p == binding && !same {
		p = skipping
	}
	r.value(box.UnsafePointer(), x, p)
	if p == setting && r.err == nil {
		v.Set(box.Elem())
	}
}

// chunks restores the frames, which are no longer free.
func (r *imageReader) chunks() {
	pool := r.pool
	taken := map[Ref]bool{}
	for n := r.uvarint(r.mostOf()); n > 0 && r.err == nil; n-- {
		ref := Ref(r.uvarint(uint64(pool.Chunks())))
		m := pool.Meta(ref)
		b := r.take(uint64(unsafe.Sizeof(*m)))
		if r.err != nil {
			return
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m)), b)
		head := r.take(r.uvarint(r.mostOf()))
		if int(m.Head)+int(m.Len) <= pool.ChunkSize() {
			to := pool.Bytes(ref)
			clear(to[copy(to, head):])
		}
		taken[ref] = true
	}
	pool.free = slices.DeleteFunc(pool.free, func(ref Ref) bool { return taken[ref] })
}
