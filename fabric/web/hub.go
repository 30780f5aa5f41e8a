package web

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"gswitch/fabric/view"
)

// hub takes samples from a source while there are viewers, encodes each once, and passes
// it to all of them. A viewer that has not taken a sample gets the next one in its place.
type hub struct {
	src   view.Source
	stop  context.CancelFunc
	done  chan struct{}
	some  chan struct{} // somebody has come
	first chan struct{}
	once  sync.Once

	mu      sync.Mutex
	viewers map[*viewer]bool
	last    *event
	closed  bool
}

type viewer struct{ next chan *event }

// event is a sample as it is sent.
type event struct {
	layout      *view.Layout
	shape, data []byte // of the layout and of the sample; data nil: there is none yet
}

func newHub(src view.Source) *hub {
	ctx, stop := context.WithCancel(context.Background())
	h := &hub{src: src, stop: stop, done: make(chan struct{}), some: make(chan struct{}, 1), first: make(chan struct{}), viewers: map[*viewer]bool{}}
	h.last = h.encode(nil, nil)
	go h.run(ctx)
	return h
}

// encode makes an event; was is the one before.
func (h *hub) encode(was *event, s *view.Sample) *event {
	e := &event{layout: h.src.Layout()}
	if was != nil && was.layout == e.layout {
		e.shape = was.shape
	} else {
		e.shape = encoded("layout", e.layout)
	}
	if s != nil {
		e.data = encoded("sample", s)
	}
	return e
}

// encoded is an event of Server-Sent Events.
func encoded(name string, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers, strings and lists of them; the sources keep infinities out
	}
	b = append([]byte("event: "+name+"\ndata: "), b...)
	return append(b, "\n\n"...)
}

func (h *hub) run(ctx context.Context) {
	defer close(h.done)
	for {
		for h.count() == 0 {
			select {
			case <-ctx.Done():
				return
			case <-h.some:
			}
		}
		s, err := h.src.Sample(ctx)
		if ctx.Err() != nil {
			return
		}
		h.publish(s)
		if err != nil {
			return // it was the last one; who comes later gets it too
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(fastest):
		}
	}
}

func (h *hub) publish(s *view.Sample) {
	h.mu.Lock()
	was := h.last
	h.mu.Unlock()
	e := h.encode(was, s)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = e
	for v := range h.viewers {
		v.offer(e)
	}
}

// offer hands e over, in place of one that was not taken.
func (v *viewer) offer(e *event) {
	select {
	case <-v.next:
	default:
	}
	v.next <- e // there is room: only who holds the hub's lock puts something there
}

func (h *hub) enter() *viewer {
	v := &viewer{next: make(chan *event, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(v.next)
		return v
	}
	h.viewers[v] = true
	v.offer(h.last)
	h.once.Do(func() { close(h.first) })
	select {
	case h.some <- struct{}{}:
	default:
	}
	return v
}

func (h *hub) leave(v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.viewers, v)
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.viewers)
}

func (h *hub) close() {
	h.stop()
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for v := range h.viewers {
		delete(h.viewers, v)
		close(v.next)
	}
}
