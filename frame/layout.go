package frame

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// How an image reads and writes values of a type.
type shape uint8

const (
	plainShape   shape = iota // bytes without pointers
	structShape               // fields
	arrayShape                // elem, n times
	pointerShape              // to elem; also atomic.Pointer
	sliceShape                // of elem
	stringShape
	mapShape
	ifaceShape
	addrShape // netip.Addr, whose zone is a pointer that has a meaning
	keptShape // function, channel, or what an image leaves as it is
)

// layout is a type as an image sees it.
type layout struct {
	t      reflect.Type
	shape  shape
	refs   bool // a Ref may lie in it, without a pointer between
	elem   *layout
	key    *layout
	n      int // arrayShape
	fields []layoutField
}

type layoutField struct {
	offset uintptr
	*layout
}

var (
	refType  = reflect.TypeFor[Ref]()
	addrType = reflect.TypeFor[netip.Addr]()
)

// layouts are those of the types that were used.
type layouts struct {
	byType map[reflect.Type]*layout
	byName map[string]*layout
	kept   map[reflect.Type]bool
	known  []reflect.Value // pointers
	remade []reflect.Type
}

func newLayouts(im *Imager) *layouts {
	ls := &layouts{byType: map[reflect.Type]*layout{}, byName: map[string]*layout{}, kept: map[reflect.Type]bool{
		reflect.TypeFor[*Arena](): true, reflect.TypeFor[*Pool](): true, reflect.TypeFor[*Depot](): true}, remade: im.Remade}
	for _, t := range im.Kept {
		ls.kept[t] = true
	}
	for _, p := range im.Known {
		v := reflect.ValueOf(p)
		ls.known, ls.kept[v.Type()] = append(ls.known, v), true
	}
	for _, t := range im.Types {
		ls.of(t)
	}
	return ls
}

// numberOf returns which of what is known a pointer leads to, -1 if it is none of it.
func (ls *layouts) numberOf(t reflect.Type, p unsafe.Pointer) int {
	return slices.IndexFunc(ls.known, func(v reflect.Value) bool { return v.Type() == t && v.UnsafePointer() == p })
}

// typeName names a type so that no other of a program has the same name, but for
// those that are declared within functions.
func typeName(t reflect.Type) string {
	switch {
	case t.Name() != "":
		return t.PkgPath() + "." + t.Name()
	case t.Kind() == reflect.Pointer:
		return "*" + typeName(t.Elem())
	case t.Kind() == reflect.Slice:
		return "[]" + typeName(t.Elem())
	case t.Kind() == reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), typeName(t.Elem()))
	case t.Kind() == reflect.Map:
		return "map[" + typeName(t.Key()) + "]" + typeName(t.Elem())
	}
	return t.String()
}

// of returns the layout of a type, and learns those that it consists of and
// points to.
func (ls *layouts) of(t reflect.Type) *layout {
	if l := ls.byType[t]; l != nil {
		return l
	}
	l := &layout{t: t}
	ls.byType[t] = l
	if name := typeName(t); ls.byName[name] == nil {
		ls.byName[name] = l
	} else {
		ls.byName[name] = &layout{t: reflect.TypeFor[struct{}]()} // two of one name: neither can be restored
	}
	switch {
	case ls.kept[t]:
		l.shape = keptShape
		return l
	case t == addrType:
		l.shape = addrShape
		return l
	case t.PkgPath() == "sync/atomic" && strings.HasPrefix(t.Name(), "Pointer["):
		l.shape = pointerShape // first: what it leads to may contain such a pointer
		l.elem = ls.of(t.Field(0).Type.Elem().Elem())
		return l
	}
	switch t.Kind() {
	case reflect.Struct:
		ls.structure(l)
	case reflect.Array:
		l.elem, l.n = ls.of(t.Elem()), t.Len()
		if l.refs = l.elem.refs; l.elem.shape != plainShape {
			l.shape = arrayShape
		}
	case reflect.Pointer:
		l.shape = pointerShape
		l.elem = ls.of(t.Elem())
	case reflect.Slice:
		l.shape = sliceShape
		l.elem = ls.of(t.Elem())
	case reflect.Map:
		l.shape = mapShape
		l.key, l.elem = ls.of(t.Key()), ls.of(t.Elem())
	case reflect.String:
		l.shape = stringShape
	case reflect.Interface:
		l.shape = ifaceShape
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		l.shape = keptShape
	default:
		l.refs = t == refType
	}
	return l
}

func (ls *layouts) structure(l *layout) {
	for i := range l.t.NumField() {
		f := l.t.Field(i)
		x := ls.of(f.Type)
		l.refs = l.refs || x.refs
		if x.shape != plainShape {
			l.shape = structShape
		}
		l.fields = append(l.fields, layoutField{f.Offset, x})
	}
}

func (l *layout) String() string { return fmt.Sprint(l.t) }

// holds reports whether count values of a type lie one after the other from an
// offset on in n values of l.
func (l *layout) holds(n int, offset uintptr, want *layout, count int) bool {
	size := l.t.Size()
	switch {
	case offset >= size*uintptr(n):
		return false
	case l == want:
		return offset%size == 0 && offset/size+uintptr(count) <= uintptr(n)
	}
	offset %= size
	if l.t.Kind() == reflect.Array {
		return l.elem.holds(l.n, offset, want, count)
	}
	for _, f := range l.fields {
		if f.offset <= offset && offset-f.offset < f.t.Size() {
			return f.holds(1, offset-f.offset, want, count)
		}
	}
	return false
}
