package frame

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// part is an object to whose field another one points.
type part struct {
	n    int
	next *part
}

type speaker interface{ say() string }

func (p *part) say() string { return fmt.Sprint(p.n) }

type word string

func (w word) say() string { return string(w) }

// whole has all that an image has to cope with.
type whole struct {
	pool    *Pool
	name    string
	parts   []part
	middle  *part // of parts
	field   *int  // of a part
	tail    []part
	chain   *part // in a circle
	table   map[string]*part
	again   map[string]*part // the same one
	voice   speaker
	voices  []speaker
	held    []Ref
	byRef   map[Ref]int
	prog    atomic.Pointer[part]
	addr    netip.Addr
	zone    netip.Addr
	empty   []int
	nothing *struct{}
	call    func() int // a method of itself
	self    *whole
	grid    [2][]int
	boxed   any
}

func (w *whole) count() int { return len(w.parts) + w.parts[0].n }

// newWhole is one as it is built.
func newWhole(pool *Pool) *whole {
	w := &whole{pool: pool, parts: make([]part, 2), voice: &part{}, voices: []speaker{word("")}, table: map[string]*part{}, boxed: [2]*part{}}
	w.call, w.self, w.again = w.count, w, w.table
	w.prog.Store(&part{})
	return w
}

func lived(pool *Pool) *whole {
	w := newWhole(pool)
	w.name = "a name"
	w.parts = append(w.parts, part{n: 3}, part{n: 4}, part{n: 5})
	w.parts[0].n = 10
	w.middle, w.field, w.tail = &w.parts[2], &w.parts[3].n, w.parts[3:]
	w.chain = &part{n: 1, next: &part{n: 2}}
	w.chain.next.next = w.chain
	w.table["x"], w.table["y"] = w.middle, w.chain
	w.voice, w.voices = word("aloud"), []speaker{w.chain, word("w"), nil}
	first := pool.New([]byte("header of a frame and its payload"))
	second := pool.New([]byte("another one"))
	pool.Meta(first).QNext = second
	w.held, w.byRef = []Ref{first, Nil}, map[Ref]int{first: 1}
	w.prog.Store(w.chain)
	w.addr, w.zone = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1%eth0")
	w.empty, w.nothing = []int{}, new(struct{})
	w.grid[1] = make([]int, 2, 7)
	w.boxed = [2]*part{w.chain, w.middle}
	return w
}

var testImager = Imager{Bytes: func([]byte) int { return 6 }}

func TestImage(t *testing.T) {
	from := NewPool(MustArena(16, 256, 64))
	a := lived(from)
	image, err := testImager.Append(nil, a, from)
	if err != nil {
		t.Fatal(err)
	}
	to := NewPool(MustArena(16, 256, 64))
	b := newWhole(to)
	was := b.voice
	if err := testImager.Restore(image, b, to); err != nil {
		t.Fatal(err)
	}
	if b.pool != to || b.self != b || b.call() != a.call() || reflect.ValueOf(was) == reflect.ValueOf(b.voice) {
		t.Error("what belongs to the object that was there is another one's")
	}
	b.parts[2].n, b.parts[3].n = 77, 78
	if b.middle.n != 77 || *b.field != 78 || b.tail[0].n != 78 || b.boxed.([2]*part)[1].n != 77 {
		t.Error("pointers into an array lead elsewhere")
	}
	b.parts[2].n, b.parts[3].n = 3, 4
	b.table["z"] = b.chain
	if b.again["z"] != b.chain || b.table["y"].next.next != b.chain || b.table["x"] != b.middle || b.prog.Load() != b.chain || b.voices[0] != speaker(b.chain) {
		t.Error("what was one object is two")
	}
	delete(b.table, "z")
	// Apart from functions, from what the nodes have of their own, and from what is not
	// compared by what it leads to.
	if p, q := a.prog.Swap(nil), b.prog.Swap(nil); !reflect.DeepEqual(p, q) {
		t.Errorf("an atomic pointer leads to %+v, it was %+v", q, p)
	}
	a.call, b.call, a.pool, b.pool = nil, nil, nil, nil
	if !reflect.DeepEqual(a, b) || cap(b.grid[1]) != 7 || b.empty == nil {
		t.Errorf("it comes back as\n%+v\nit was\n%+v", b, a)
	}
	if got := to.Bytes(b.held[0]); string(got) != "header"+strings.Repeat("\x00", 27) {
		t.Errorf("a frame comes back as %q", got)
	}
	if got := to.Bytes(to.Meta(b.held[0]).QNext); !bytes.HasPrefix(got, []byte("anothe")) {
		t.Errorf("the frame behind it comes back as %q", got)
	}
	if to.Available() != 14 {
		t.Errorf("%d of 16 chunks are free", to.Available())
	}
}

// An image that cannot be restored is refused.
func TestImageIsRefused(t *testing.T) {
	pool := NewPool(MustArena(16, 256, 64))
	image, err := testImager.Append(nil, lived(pool), pool)
	if err != nil {
		t.Fatal(err)
	}
	type other struct{ w *whole }
	if err := testImager.Restore(image, &other{newWhole(pool)}, pool); err == nil || !strings.Contains(err.Error(), "the image is of") {
		t.Errorf("into another kind of object: %v", err)
	}
	if _, err := testImager.Append(nil, *newWhole(pool), pool); err == nil {
		t.Error("of a value that is no pointer")
	}
	w := newWhole(pool)
	w.call = nil
	if err := testImager.Restore(image, w, pool); err == nil || !strings.Contains(err.Error(), "func() int") {
		t.Errorf("without a function that it needs: %v", err)
	}
	for n := range len(image) {
		if err := testImager.Restore(image[:n], newWhole(pool), NewPool(MustArena(16, 256, 64))); err == nil {
			t.Fatalf("cut off after %d of %d bytes: no error", n, len(image))
		}
	}
}

// One bit that is wrong is found, or does no harm to memory.
func TestImageWithAWrongBit(t *testing.T) {
	pool := NewPool(MustArena(4, 256, 64))
	image, err := testImager.Append(nil, lived(pool), pool)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for bit := range 8 * len(image) {
		image[bit/8] ^= 1 << (bit % 8)
		to := NewPool(MustArena(4, 256, 64))
		if testImager.Restore(image, newWhole(to), to) != nil {
			refused++
		}
		image[bit/8] ^= 1 << (bit % 8)
	}
	runtime.GC() // it looks at all pointers
	if refused < len(image) {
		t.Errorf("%d of %d wrong bits were found", refused, 8*len(image))
	}
}

// Whatever the bytes are, they are restored or refused.
func FuzzImage(f *testing.F) {
	pool := NewPool(MustArena(16, 256, 64))
	image, err := testImager.Append(nil, lived(pool), pool)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(image)
	f.Fuzz(func(t *testing.T, b []byte) {
		to := NewPool(MustArena(16, 256, 64))
		_ = testImager.Restore(b, newWhole(to), to)
	})
}
