//go:build ignore

/* The XDP program of a port: hands frames to the AF_XDP socket of the queue
 * that they came in on, all of them or those that the filter selects, and
 * passes the rest to the kernel. */
#include "kernel.h"

const char gswitch_license[] SEC("license") = "Dual MIT/GPL";

/* Index of the counters. Mirrors Counters in program.go. */
enum { REDIRECTED, PASSED, NO_SOCKET, COUNTERS };

/* What the filter looks at, and the kind of a key in `match`. Constants are
 * set before loading, so the verifier removes what is not asked for. */
enum { BY_ETHERTYPE, BY_MAC, BY_PROTOCOL, BY_PORT, KINDS };
enum { INVERT = 1 << KINDS };
volatile const __u32 filter = 0;

/* Not 0: frames of PTP get the instants at which they came as metadata before
 * them, behind STAMP_MAGIC. Mirrors Stamp in program.go. */
volatile const __u32 stamp = 0;
#define STAMP_MAGIC 0x67737769746368ULL

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* Key: kind in the top byte, value below. The value is not used. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u8);
} match SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

static __always_inline void count(__u32 which)
{
	__u64 *c = bpf_map_lookup_elem(&counters, &which);
	if (c)
		(*c)++;
}

static __always_inline int matches(__u32 kind, __u64 value)
{
	__u64 key = (__u64)kind << 56 | value;
	return (filter & 1 << kind) && bpf_map_lookup_elem(&match, &key);
}

static __always_inline __u16 be16(const __u8 *p) { return (__u16)p[0] << 8 | p[1]; }

/* IP protocol and destination port of the packet at p. Later fragments have
 * no ports, and IPv6 extension headers are not walked. */
static __always_inline int matches_ip(const __u8 *p, const __u8 *end, __u16 ethertype)
{
	__u32 header, later_fragment = 0;
	__u8 protocol;

	if (ethertype == 0x0800) {
		if (p + 20 > end)
			return 0;
		protocol = p[9];
		header = (p[0] & 15) * 4;
		later_fragment = be16(p + 6) & 0x1fff;
	} else if (ethertype == 0x86dd) {
		if (p + 40 > end)
			return 0;
		protocol = p[6];
		header = 40;
	} else {
		return 0;
	}
	if (matches(BY_PROTOCOL, protocol))
		return 1;
	if (!(filter & 1 << BY_PORT) || (protocol != 6 && protocol != 17) || later_fragment || header < 20)
		return 0;
	p += header;
	if (p + 4 > end)
		return 0;
	return matches(BY_PORT, be16(p + 2));
}

static __always_inline int matches_frame(const __u8 *p, const __u8 *end)
{
	__u16 ethertype;

	if (p + 14 > end)
		return 0;
	if (matches(BY_MAC, (__u64)be16(p) << 32 | (__u64)be16(p + 2) << 16 | be16(p + 4)))
		return 1;
	ethertype = be16(p + 12);
	p += 14;
	/* At most two tags: 802.1ad outside, 802.1Q inside. */
	for (int i = 0; i < 2; i++) {
		if (ethertype != 0x8100 && ethertype != 0x88a8)
			break;
		if (p + 4 > end)
			return 0;
		ethertype = be16(p + 2);
		p += 4;
	}
	if (matches(BY_ETHERTYPE, ethertype))
		return 1;
	return matches_ip(p, end, ethertype);
}

/* The first instant is CLOCK_MONOTONIC's, the second that of the clock of the
 * hardware, 0 where it has stamped nothing. Drivers without room for metadata
 * leave the frame as it is. */
static __always_inline void note_time(struct xdp_md *ctx)
{
	const __u8 *p = (void *)(long)ctx->data;
	__u64 *meta, hardware = 0;

	if (p + 14 > (const __u8 *)(long)ctx->data_end || be16(p + 12) != 0x88f7)
		return;
#ifdef HARDWARE
	if (bpf_xdp_metadata_rx_timestamp(ctx, &hardware))
		hardware = 0;
#endif
	if (bpf_xdp_adjust_meta(ctx, -24))
		return;
	meta = (void *)(long)ctx->data_meta;
	if ((void *)(meta + 3) > (void *)(long)ctx->data)
		return;
	meta[0] = STAMP_MAGIC;
	meta[1] = bpf_ktime_get_ns();
	meta[2] = hardware;
}

/* xdp.frags: the program sees only the first part of a frame that is larger
 * than a page, but the whole frame is redirected. */
SEC("xdp.frags")
int gswitch_port(struct xdp_md *ctx)
{
	int action;

	if (filter) {
		int hit = matches_frame((void *)(long)ctx->data, (void *)(long)ctx->data_end);
		if (hit == !!(filter & INVERT)) {
			count(PASSED);
			return XDP_PASS;
		}
	}
	if (stamp)
		note_time(ctx);
	action = bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
	count(action == XDP_REDIRECT ? REDIRECTED : NO_SOCKET);
	return action;
}
