package xsk

import (
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// Open opens a socket on one queue of a device. With Mode Auto it tries zero-copy first
// and then copy; Rungs says why it is not the former. Whether copy is native or generic
// depends on how the XDP program is attached: OpenPort does both.
//
// A queue whose last socket has just been closed stays busy in the kernel for some tens
// of milliseconds: Open retries for up to two seconds.
func Open(u *UMEM, c Config) (*Socket, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("AF_XDP socket: %w", err)
	}
	var s *Socket
	err = InNetNS(c.NetNS, func() error {
		ifi, err := net.InterfaceByIndex(c.IfIndex) // rejects 0 and less
		if err != nil {
			return fmt.Errorf("AF_XDP socket: interface index %d%s: %w", c.IfIndex, inNetNS(c.NetNS), err)
		}
		if s, err = climb(u, c, ifi); err != nil {
			return fmt.Errorf("interface %s%s: %w", ifi.Name, inNetNS(c.NetNS), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func inNetNS(netns string) string {
	if netns == "" {
		return ""
	}
	return " in network namespace " + netns
}

// climb tries the modes from the best down. The caller is in the namespace of
// the interface and has filled in the defaults.
func climb(u *UMEM, c Config, ifi *net.Interface) (*Socket, error) {
	if err := checkMTU(ifi, u.chunk, c.Multibuffer); err != nil {
		return nil, err
	}
	var rungs []Rung
	for _, m := range c.Mode.ladder() {
		if c.Mode == Auto && m == Generic {
			break // for the socket the same copy mode as native
		}
		s, err := patiently(u, c, ifi, m)
		rungs = append(rungs, Rung{m, err})
		if err == nil {
			s.rungs = rungs
			return s, nil
		}
		if !modeMatters(err) {
			return nil, fmt.Errorf("AF_XDP socket on queue %d: %w", c.Queue, err)
		}
	}
	return nil, fmt.Errorf("AF_XDP socket on queue %d: %w", c.Queue, refused(rungs))
}

const (
	busyFirst = 5 * time.Millisecond
	busyMost  = 100 * time.Millisecond
	busyTotal = 2 * time.Second
)

// patiently calls attempt repeatedly, with back-off, while the queue is busy.
func patiently(u *UMEM, c Config, ifi *net.Interface, m Mode) (*Socket, error) {
	waited := time.Duration(0)
	for pause := busyFirst; ; pause = min(2*pause, busyMost) {
		s, err := attempt(u, c, ifi, m)
		if !errors.Is(err, unix.EBUSY) {
			return s, err
		}
		if waited >= busyTotal {
			return nil, fmt.Errorf("%w (tried for %v): %w", ErrQueueBusy, busyTotal, err)
		}
		time.Sleep(pause)
		waited += pause
	}
}

// attempt opens a socket in one mode: joined to an open socket of the same kind if there
// is one, or else with a registration of its own.
func attempt(u *UMEM, c Config, ifi *net.Interface, m Mode) (*Socket, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.mem == nil {
		return nil, errors.New("the UMEM is closed")
	}
	for _, peer := range u.sockets {
		if peer.zerocopy != (m == ZeroCopy) || peer.multibuffer != c.Multibuffer || peer.ifindex == c.IfIndex && peer.queue == c.Queue {
			continue
		}
		s, err := create(u, c, ifi, m, peer)
		if errors.Is(err, unix.EBADF) {
			continue // the peer's device has been removed; it cannot be joined any more
		}
		return s, err
	}
	return create(u, c, ifi, m, nil)
}

// create opens and binds a socket. With a peer it shares the peer's registration. The
// caller holds u.mu.
func create(u *UMEM, c Config, ifi *net.Interface, m Mode, peer *Socket) (*Socket, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EAFNOSUPPORT):
		return nil, fmt.Errorf("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): %w", err)
	case errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("create (needs CAP_NET_RAW): %w", err)
	case err != nil:
		return nil, fmt.Errorf("create: %w", err)
	}
	s := &Socket{
		fd: fd, umem: u, name: ifi.Name, ifindex: c.IfIndex, queue: c.Queue, netns: c.NetNS,
		mode: m, multibuffer: c.Multibuffer,
		held: make([]uint64, (u.Chunks()+63)/64), head: frame.Nil, tail: frame.Nil,
		rejected: make([]frame.Ref, 0, c.TxSize),
	}
	if err := s.setUp(c, peer); err != nil {
		_ = s.release()
		return nil, err
	}
	u.sockets = append(u.sockets, s)
	return s, nil
}

// setUp registers a new socket, maps its rings and binds it.
func (s *Socket) setUp(c Config, peer *Socket) error {
	if peer == nil {
		if err := s.register(); err != nil {
			return err
		}
	}
	if err := s.makeRings(c); err != nil {
		return err
	}
	if err := s.bind(c, peer); err != nil {
		return err
	}
	s.tune(c)
	return s.readOptions()
}

// register gives the UMEM to the kernel, which pins its pages.
func (s *Socket) register() error {
	u := s.umem
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&u.mem[0]))), Len: uint64(len(u.mem)), Size: uint32(u.chunk)}
	err := setsockopt(s.fd, unix.XDP_UMEM_REG, unsafe.Pointer(&reg), unsafe.Sizeof(reg))
	if errors.Is(err, unix.ENOBUFS) {
		var l unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l)
		return fmt.Errorf("register the UMEM: %d bytes must be locked in memory, RLIMIT_MEMLOCK allows %d in all; raise it (ulimit -l, LimitMEMLOCK=) or grant CAP_IPC_LOCK: %w", len(u.mem), l.Cur, err)
	}
	if err != nil {
		return fmt.Errorf("register the UMEM of %d chunks of %d bytes: %w", u.Chunks(), u.chunk, err)
	}
	return nil
}

// makeRings sizes the four rings and maps them.
func (s *Socket) makeRings(c Config) error {
	rings := [...]struct {
		name   string
		option int
		size   int
	}{
		{"fill", unix.XDP_UMEM_FILL_RING, c.FillSize},
		{"completion", unix.XDP_UMEM_COMPLETION_RING, c.CompSize},
		{"RX", unix.XDP_RX_RING, c.RxSize},
		{"TX", unix.XDP_TX_RING, c.TxSize},
	}
	for _, r := range rings {
		n := uint32(r.size)
		if err := setsockopt(s.fd, r.option, unsafe.Pointer(&n), unsafe.Sizeof(n)); err != nil {
			return fmt.Errorf("%s ring of %d entries: %w", r.name, r.size, err)
		}
	}
	var off unix.XDPMmapOffsets
	n, err := getsockopt(s.fd, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&off), unsafe.Sizeof(off))
	if err != nil {
		return fmt.Errorf("ring offsets: %w", err)
	}
	if n < unsafe.Sizeof(off) {
		return errors.New("ring offsets: the kernel is older than 5.4 and has no need-wakeup flag")
	}
	mapRing := func(page int64, o unix.XDPRingOffset, size int, entry uintptr) ([]byte, error) {
		mem, err := unix.Mmap(s.fd, page, int(o.Desc)+size*int(entry), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return nil, fmt.Errorf("map a ring: %w", err)
		}
		s.mappings = append(s.mappings, mem)
		return mem, nil
	}
	const descSize, addrSize = unsafe.Sizeof(unix.XDPDesc{}), unsafe.Sizeof(uint64(0))
	rx, err := mapRing(unix.XDP_PGOFF_RX_RING, off.Rx, c.RxSize, descSize)
	if err != nil {
		return err
	}
	tx, err := mapRing(unix.XDP_PGOFF_TX_RING, off.Tx, c.TxSize, descSize)
	if err != nil {
		return err
	}
	fill, err := mapRing(unix.XDP_UMEM_PGOFF_FILL_RING, off.Fr, c.FillSize, addrSize)
	if err != nil {
		return err
	}
	comp, err := mapRing(unix.XDP_UMEM_PGOFF_COMPLETION_RING, off.Cr, c.CompSize, addrSize)
	if err != nil {
		return err
	}
	s.rx, s.tx = newDescRing(rx, off.Rx, uint32(c.RxSize)), newDescRing(tx, off.Tx, uint32(c.TxSize))
	s.fill, s.comp = newAddrRing(fill, off.Fr, uint32(c.FillSize)), newAddrRing(comp, off.Cr, uint32(c.CompSize))
	return nil
}

// bind binds the socket to its queue.
func (s *Socket) bind(c Config, peer *Socket) error {
	sa := &unix.SockaddrXDP{Ifindex: uint32(c.IfIndex), QueueID: uint32(c.Queue)}
	if peer != nil {
		// The kernel takes all other flags from the peer and rejects them here.
		sa.Flags, sa.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(peer.fd)
	} else {
		sa.Flags = unix.XDP_USE_NEED_WAKEUP | unix.XDP_COPY
		if s.mode == ZeroCopy {
			sa.Flags = unix.XDP_USE_NEED_WAKEUP | unix.XDP_ZEROCOPY
		}
		if c.Multibuffer {
			sa.Flags |= unix.XDP_USE_SG
		}
	}
	err := unix.Bind(s.fd, sa)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) && s.mode == ZeroCopy:
		return fmt.Errorf("the driver has no zero-copy: %w", err)
	case errors.Is(err, unix.ENETDOWN):
		return fmt.Errorf("%w; set it up first (ip link set dev %s up): %w", ErrDown, s.name, err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("bind: the kernel refuses queue %d, mode %s, multi-buffer %v; does the queue exist (ethtool -l %s)?: %w", c.Queue, s.mode, c.Multibuffer, s.name, err)
	case err != nil:
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

// tune sets options that speed up transmission. They may fail without harm.
func (s *Socket) tune(c Config) {
	// A packet in flight is charged to the send buffer, including its bookkeeping; the
	// default of 208 KiB would hold only some 200 of them.
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, min((c.TxSize+c.CompSize)*(s.umem.chunk+1024), 1<<30))
	s.txBudget = 32
	if unix.SetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, c.TxBudget) == nil {
		s.txBudget = c.TxBudget
	}
	if c.BusyPoll == 0 {
		return
	}
	for _, o := range [...]struct{ option, value int }{
		{unix.SO_PREFER_BUSY_POLL, 1}, {unix.SO_BUSY_POLL, 20}, {unix.SO_BUSY_POLL_BUDGET, c.BusyPoll},
	} {
		if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o.option, o.value) != nil {
			return
		}
	}
	s.enableNAPI = true
	s.learnNAPI()
}

// learnNAPI finds out whether the socket knows a driver context that it can poll. In
// zero-copy mode it does from bind on, in copy mode from its first frame on, and never if
// the driver has none: the options are then accepted without effect.
func (s *Socket) learnNAPI() {
	id, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_INCOMING_NAPI_ID)
	s.busyPoll.Store(err == nil && id != 0)
}

// readOptions asks the kernel which mode it actually chose.
func (s *Socket) readOptions() error {
	v, err := unix.GetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_OPTIONS)
	if err != nil {
		return fmt.Errorf("read options: %w", err)
	}
	s.zerocopy = v&unix.XDP_OPTIONS_ZEROCOPY != 0
	return nil
}

func setsockopt(fd, option int, p unsafe.Pointer, n uintptr) error {
	if _, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(p), n, 0); e != 0 {
		return e
	}
	return nil
}

func getsockopt(fd, option int, p unsafe.Pointer, n uintptr) (uintptr, error) {
	l := uint32(n)
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(p), uintptr(unsafe.Pointer(&l)), 0); e != 0 {
		return 0, e
	}
	return uintptr(l), nil
}
