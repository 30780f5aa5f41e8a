package xsk

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// UMEM is the memory that all sockets of a worker group share.
//
// The kernel knows it through a registration, which lasts as long as any socket made from
// it. The first socket registers the memory; later ones join a socket that is still open.
// The kernel does not let zero-copy and copy sockets, or sockets with and without chained
// frames, join each other, so each kind has a registration of its own over the same
// memory.
type UMEM struct {
	mapping []byte // the mapping, a whole number of pages
	mem     []byte
	chunk   int
	huge    bool

	mu      sync.Mutex
	sockets []*Socket // open ones
}

// Options are the choices for a UMEM.
type Options struct {
	HugePages bool // use 2 MiB pages if enough are reserved, ordinary ones otherwise
}

const hugePage = 2 << 20

// NewUMEM maps memory for n chunks of chunk bytes: 2048 or the page size, which are the
// sizes that the kernel accepts.
func NewUMEM(n, chunk int, o Options) (*UMEM, error) {
	page := os.Getpagesize()
	if chunk != 2048 && chunk != page {
		return nil, fmt.Errorf("UMEM: chunk size %d: the kernel takes 2048 or the page size %d", chunk, page)
	}
	if n < 1 {
		return nil, fmt.Errorf("UMEM: %d chunks: at least one is needed", n)
	}
	u := &UMEM{chunk: chunk}
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE
	size := n * chunk
	var err error
	if o.HugePages {
		u.mapping, err = unix.Mmap(-1, 0, roundUp(size, hugePage), prot, flags|unix.MAP_HUGETLB)
		u.huge = err == nil
	}
	if !u.huge {
		if u.mapping, err = unix.Mmap(-1, 0, roundUp(size, page), prot, flags); err != nil {
			return nil, fmt.Errorf("UMEM: map %d chunks of %d bytes (%d MiB): %w", n, chunk, size>>20, err)
		}
	}
	u.mem = u.mapping[:size:size]
	return u, nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// Bytes returns the memory, over which a frame.Arena of the same chunk size is laid.
func (u *UMEM) Bytes() []byte { return u.mem }

// ChunkSize returns the size of a chunk in bytes.
func (u *UMEM) ChunkSize() int { return u.chunk }

// Chunks returns the number of chunks.
func (u *UMEM) Chunks() int { return len(u.mem) / u.chunk }

// HugePages reports whether the memory lies in huge pages.
func (u *UMEM) HugePages() bool { return u.huge }

// Sockets returns how many sockets are open on the memory.
func (u *UMEM) Sockets() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.sockets)
}

// Close unmaps the memory. All sockets must be closed, and no frame of an arena over it
// may be used afterwards.
func (u *UMEM) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.sockets) > 0 {
		return fmt.Errorf("UMEM: %d sockets are still open, first that of %s", len(u.sockets), u.sockets[0])
	}
	if u.mapping == nil {
		return nil
	}
	err := unix.Munmap(u.mapping)
	u.mapping, u.mem = nil, nil
	return err
}

// unlist removes a closed socket from the list. The caller holds u.mu.
func (u *UMEM) unlist(s *Socket) {
	for i, t := range u.sockets {
		if t == s {
			u.sockets = append(u.sockets[:i], u.sockets[i+1:]...)
			return
		}
	}
}
