/* The few kernel definitions that xdp.c needs, so that no header package has
 * to be installed to regenerate the objects. Numbers are the kernel's stable
 * user ABI (uapi/linux/bpf.h). */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))

/* BTF map definitions: an integer is the length of an array type. */
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_XSKMAP = 17 };
enum { XDP_PASS = 2, XDP_REDIRECT = 4 };

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_xdp_adjust_meta)(struct xdp_md *ctx, int delta) = (void *)54;
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;

/* Of drivers that give a program the time at which hardware saw a frame (Linux 6.3). Programs that
 * name it are bound to a device, so only the object built with HARDWARE does. */
#define __ksym __attribute__((section(".ksyms")))
extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *ctx, __u64 *timestamp) __ksym;
