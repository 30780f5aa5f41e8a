/*
 * The C yardstick: what a plain AF_XDP forwarder does between two ports, with
 * nothing above it. One UMEM for both ports (a frame crosses as a descriptor),
 * vectors of 64, one sendto a vector, spinning. It needs a kernel header
 * (linux/if_xdp.h, linux/bpf.h) and no library.
 *
 *	peer-cl2fwd CPU IF0 IF1
 *	peer-cl2fwd --memory          without a kernel: rings in memory, whose far side is on the same core
 *
 * Ring indices follow the kernel's protocol: the consumer reads the producer
 * index with acquire order before the entries, the producer publishes its own
 * with release order after them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9 /* Linux 6.17: frames a sendto */
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

enum { VECTOR = 64, CHUNK = 2048, CHUNKS = 8192, RING = 2048, FILL = 4096 };

struct ring {
	uint32_t *prod, *cons, *flags;
	void *entries;
	uint32_t mask, next, seen; /* our index; the other side's as last read */
};

struct port {
	int fd;
	struct ring rx, tx, fill, done;
	uint32_t inflight;
	uint64_t forwarded, refused, kicks;
};

static volatile sig_atomic_t stop;
static uint8_t *umem;
static uint64_t spare[CHUNKS];
static int spares;

static void on_signal(int s) { (void)s; stop = 1; }

static void check(int failed, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "peer-cl2fwd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int bpf(int cmd, union bpf_attr *a) { return syscall(SYS_bpf, cmd, a, sizeof *a); }

/* redirect loads "return bpf_redirect_map(&map, ctx->rx_queue_index, XDP_PASS)" and links it to the port. */
static void redirect(int ifindex, int sock)
{
	union bpf_attr m = { .map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1 };
	int map = bpf(BPF_MAP_CREATE, &m);
	check(map < 0, "create map");
	uint32_t zero = 0, value = sock;
	union bpf_attr e = { .map_fd = map, .key = (uint64_t)(uintptr_t)&zero, .value = (uint64_t)(uintptr_t)&value };
	check(bpf(BPF_MAP_UPDATE_ELEM, &e) < 0, "map update");

	struct bpf_insn code[] = {
		{ .code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 2, .src_reg = 1, .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr p = { .prog_type = BPF_PROG_TYPE_XDP, .insns = (uint64_t)(uintptr_t)code,
		.insn_cnt = sizeof code / sizeof code[0], .license = (uint64_t)(uintptr_t)"GPL" };
	int prog = bpf(BPF_PROG_LOAD, &p);
	check(prog < 0, "load program");
	union bpf_attr l = { .link_create = { .prog_fd = prog, .target_ifindex = ifindex, .attach_type = BPF_XDP, .flags = XDP_FLAGS_DRV_MODE } };
	check(bpf(BPF_LINK_CREATE, &l) < 0, "attach"); /* the link ends with this process */
}

static struct ring map_ring(int fd, uint64_t page, const struct xdp_ring_offset *o, uint32_t n, size_t entry)
{
	uint8_t *m = mmap(NULL, o->desc + n * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, page);
	check(m == MAP_FAILED, "map ring");
	return (struct ring){ .prod = (void *)(m + o->producer), .cons = (void *)(m + o->consumer),
		.flags = (void *)(m + o->flags), .entries = m + o->desc, .mask = n - 1 };
}

static void set(int fd, int option, int value, const char *what)
{
	check(setsockopt(fd, SOL_XDP, option, &value, sizeof value) < 0, what);
}

static void open_port(struct port *p, const char *name, int share)
{
	int ifindex = if_nametoindex(name);
	check(!ifindex, name);
	check((p->fd = socket(AF_XDP, SOCK_RAW, 0)) < 0, "socket");
	if (share < 0) {
		struct xdp_umem_reg reg = { .addr = (uint64_t)(uintptr_t)umem, .len = (uint64_t)CHUNKS * CHUNK, .chunk_size = CHUNK };
		check(setsockopt(p->fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof reg) < 0, "register memory");
	}
	set(p->fd, XDP_UMEM_FILL_RING, FILL, "fill ring");
	set(p->fd, XDP_UMEM_COMPLETION_RING, RING, "completion ring");
	set(p->fd, XDP_RX_RING, RING, "rx ring");
	set(p->fd, XDP_TX_RING, RING, "tx ring");
	struct xdp_mmap_offsets o;
	socklen_t len = sizeof o;
	check(getsockopt(p->fd, SOL_XDP, XDP_MMAP_OFFSETS, &o, &len) < 0, "ring offsets");
	p->fill = map_ring(p->fd, XDP_UMEM_PGOFF_FILL_RING, &o.fr, FILL, 8);
	p->done = map_ring(p->fd, XDP_UMEM_PGOFF_COMPLETION_RING, &o.cr, RING, 8);
	p->rx = map_ring(p->fd, XDP_PGOFF_RX_RING, &o.rx, RING, sizeof(struct xdp_desc));
	p->tx = map_ring(p->fd, XDP_PGOFF_TX_RING, &o.tx, RING, sizeof(struct xdp_desc));

	struct sockaddr_xdp a = { .sxdp_family = AF_XDP, .sxdp_ifindex = ifindex };
	if (share < 0) {
		a.sxdp_flags = XDP_COPY | XDP_USE_NEED_WAKEUP;
	} else {
		a.sxdp_flags = XDP_SHARED_UMEM;
		a.sxdp_shared_umem_fd = share;
	}
	check(bind(p->fd, (struct sockaddr *)&a, sizeof a) < 0, "bind");
	int v = 64 << 20;
	setsockopt(p->fd, SOL_SOCKET, SO_SNDBUFFORCE, &v, sizeof v);
	v = VECTOR;
	setsockopt(p->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &v, sizeof v); /* an older kernel sends 32 a call */
	redirect(ifindex, p->fd);
}

static uint32_t readable(struct ring *r)
{
	if (r->seen == r->next)
		r->seen = __atomic_load_n(r->prod, __ATOMIC_ACQUIRE);
	return r->seen - r->next;
}

static uint32_t writable(struct ring *r, uint32_t want)
{
	uint32_t room = r->mask + 1 - (r->next - r->seen);
	if (room < want) {
		r->seen = __atomic_load_n(r->cons, __ATOMIC_ACQUIRE);
		room = r->mask + 1 - (r->next - r->seen);
	}
	return room;
}

static void consumed(struct ring *r, uint32_t n) { __atomic_store_n(r->cons, r->next += n, __ATOMIC_RELEASE); }
static void produced(struct ring *r, uint32_t n) { __atomic_store_n(r->prod, r->next += n, __ATOMIC_RELEASE); }
static int sleeping(struct ring *r) { return __atomic_load_n(r->flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP; }

static void reclaim(struct port *p)
{
	uint32_t n = readable(&p->done);
	for (uint32_t i = 0; i < n; i++)
		spare[spares++] = ((uint64_t *)p->done.entries)[(p->done.next + i) & p->done.mask];
	if (n) {
		consumed(&p->done, n);
		p->inflight -= n;
	}
}

static void refill(struct port *p)
{
	uint32_t n = writable(&p->fill, VECTOR);
	if (n < VECTOR || spares < VECTOR)
		return;
	for (uint32_t i = 0; i < VECTOR; i++)
		((uint64_t *)p->fill.entries)[(p->fill.next + i) & p->fill.mask] = spare[--spares];
	produced(&p->fill, VECTOR);
}

static void kick(struct port *p)
{
	if (!sleeping(&p->tx))
		return;
	p->kicks++;
	sendto(p->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
}

static void forward(struct port *in, struct port *out)
{
	if (out->inflight)
		reclaim(out);
	uint32_t n = readable(&in->rx);
	if (n > VECTOR)
		n = VECTOR;
	if (!n) {
		if (sleeping(&in->fill))
			recvfrom(in->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
		if (out->inflight)
			kick(out);
		return;
	}
	uint32_t room = writable(&out->tx, n), sent = room < n ? room : n;
	struct xdp_desc *from = in->rx.entries, *to = out->tx.entries;
	for (uint32_t i = 0; i < n; i++) {
		struct xdp_desc *d = &from[(in->rx.next + i) & in->rx.mask];
		if (i < sent)
			to[(out->tx.next + i) & out->tx.mask] = (struct xdp_desc){ .addr = d->addr, .len = d->len };
		else
			spare[spares++] = d->addr & ~(uint64_t)(CHUNK - 1);
	}
	consumed(&in->rx, n);
	produced(&out->tx, sent);
	out->inflight += sent;
	out->forwarded += sent;
	out->refused += n - sent;
	kick(out);
	reclaim(out);
	refill(in);
}

/* far is the far side of a port's rings in place of the kernel. */
struct far {
	struct ring rx, tx, fill, done;
};

static struct ring memory_ring(uint32_t n, size_t entry)
{
	uint8_t *m = aligned_alloc(64, 192 + n * entry);
	check(!m, "memory for a ring");
	memset(m, 0, 192 + n * entry);
	return (struct ring){ .prod = (void *)m, .cons = (void *)(m + 64), .flags = (void *)(m + 128), .entries = m + 192, .mask = n - 1 };
}

static struct far open_memory(struct port *p)
{
	p->fd = -1;
	p->rx = memory_ring(RING, sizeof(struct xdp_desc));
	p->tx = memory_ring(RING, sizeof(struct xdp_desc));
	p->fill = memory_ring(RING, 8);
	p->done = memory_ring(RING, 8);
	return (struct far){ p->rx, p->tx, p->fill, p->done };
}

/* deliver moves up to n chunks from fill to RX as frames with a content. */
static void deliver(struct far *f, uint32_t n, const uint8_t *content, uint32_t len)
{
	uint32_t have = readable(&f->fill), room = writable(&f->rx, n);
	n = n < have ? n : have;
	n = n < room ? n : room;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = ((uint64_t *)f->fill.entries)[(f->fill.next + i) & f->fill.mask] + 256;
		memcpy(umem + addr, content, len);
		((struct xdp_desc *)f->rx.entries)[(f->rx.next + i) & f->rx.mask] = (struct xdp_desc){ .addr = addr, .len = len };
	}
	consumed(&f->fill, n);
	produced(&f->rx, n);
}

/* finish moves what was sent from TX to completion. */
static void finish(struct far *f)
{
	uint32_t n = readable(&f->tx), room = writable(&f->done, n);
	n = n < room ? n : room;
	for (uint32_t i = 0; i < n; i++) /* the kernel gives the chunk back, at its beginning */
		((uint64_t *)f->done.entries)[(f->done.next + i) & f->done.mask] =
			((struct xdp_desc *)f->tx.entries)[(f->tx.next + i) & f->tx.mask].addr & ~(uint64_t)(CHUNK - 1);
	consumed(&f->tx, n);
	produced(&f->done, n);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ceiling prints how long a frame takes at best, of many short spans. */
static int ceiling(void)
{
	enum { BURST = 256, LOOPS = 100, SPANS = 300 };
	static struct port a, b;
	struct far fa = open_memory(&a), fb = open_memory(&b);
	uint8_t content[60] = { 2 };
	double best = 1e9;
	for (int i = 0; i < RING / VECTOR; i++)
		refill(&a);
	for (int span = -1; span < SPANS; span++) { /* the first one warms up */
		uint64_t before = b.forwarded;
		double start = now();
		for (int i = 0; i < LOOPS; i++) {
			deliver(&fa, BURST, content, sizeof content);
			for (int k = 0; k < BURST / VECTOR; k++) {
				forward(&a, &b);
				forward(&b, &a);
			}
			finish(&fb);
		}
		double took = (now() - start) * 1e9;
		if (b.forwarded - before != LOOPS * BURST) {
			fprintf(stderr, "peer-cl2fwd: %lu of %d frames came out\n", b.forwarded - before, LOOPS * BURST);
			return 1;
		}
		if (span >= 0 && took / (LOOPS * BURST) < best)
			best = took / (LOOPS * BURST);
	}
	printf("%.2f ns/frame %.2f Mpps\n", best, 1e3 / best);
	return 0;
}

int main(int argc, char **argv)
{
	int memory = argc == 2 && !strcmp(argv[1], "--memory");
	if (argc != 4 && !memory) {
		fprintf(stderr, "usage: peer-cl2fwd CPU IF0 IF1, or peer-cl2fwd --memory\n");
		return 2;
	}
	if (!memory) {
		cpu_set_t cpus;
		CPU_ZERO(&cpus);
		CPU_SET(atoi(argv[1]), &cpus);
		check(sched_setaffinity(0, sizeof cpus, &cpus) < 0, "cpu");
	}
	struct rlimit lock = { RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_MEMLOCK, &lock);
	struct sigaction sa = { .sa_handler = on_signal };
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);

	umem = mmap(NULL, (size_t)CHUNKS * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	check(umem == MAP_FAILED, "memory");
	for (int i = CHUNKS; i-- > 0;)
		spare[spares++] = (uint64_t)i * CHUNK;
	if (memory)
		return ceiling();
	static struct port a, b;
	open_port(&a, argv[2], -1);
	open_port(&b, argv[3], a.fd);
	for (int i = 0; i < RING / VECTOR; i++) {
		refill(&a);
		refill(&b);
	}
	puts("ready");
	fflush(stdout);
	while (!stop) {
		forward(&a, &b);
		forward(&b, &a);
	}
	fprintf(stderr, "forwarded %lu and %lu, refused %lu and %lu, %lu and %lu sendto\n",
		b.forwarded, a.forwarded, b.refused, a.refused, b.kicks, a.kicks);
	return 0;
}
