/* Synchronised time of a gswitch or ghost daemon, from a page of shared memory:
 * the interval in which the root's time lies. See package clocktime. C11.
 *
 *	struct gswitch_clock c;
 *	if (gswitch_clock_open(&c, "/run/ghost/h1.clock") < 0) ...
 *	if (gswitch_clock_now(&c, &earliest, &latest) < 0) ...  // not synchronised, or half written
 */
#ifndef GSWITCH_CLOCK_H
#define GSWITCH_CLOCK_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct gswitch_clock_page {
	uint64_t magic;
	_Atomic uint64_t turn; /* odd while the rest is written */
	_Atomic int64_t at;    /* CLOCK_MONOTONIC, ns */
	_Atomic int64_t time;  /* synchronised time then, ns since 1970 */
	_Atomic int64_t eps;   /* its uncertainty then, ns; -1: not known */
	_Atomic int64_t drift; /* by how many parts in 10^9 that grows */
	_Atomic uint64_t state, epoch, root;
};

/* For one thread at a time: each opens its own. */
struct gswitch_clock {
	const struct gswitch_clock_page *page;
	uint64_t root;
	int64_t floor; /* the greatest earliest that was given out, of that root */
	int known;     /* there is one */
};

#define GSWITCH_CLOCK_MAGIC UINT64_C(0x314b434f4c435347)

/* What is returned where there is no time. */
enum {
	GSWITCH_CLOCK_UNKNOWN = -1, /* the clock is not synchronised */
	GSWITCH_CLOCK_HALF = -2,    /* the daemon was killed, or stopped, while it wrote */
};

/* How often a page that is half written is looked at: the first times at once, then each
 * millisecond, for who writes may have no processor. */
#define GSWITCH_CLOCK_LOOKS 1100
#define GSWITCH_CLOCK_AT_ONCE 100

/* Returns -1 if there is no page. */
static inline int gswitch_clock_open(struct gswitch_clock *c, const char *path)
{
	struct stat st;
	void *p = MAP_FAILED;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(struct gswitch_clock_page))
		p = mmap(0, sizeof(struct gswitch_clock_page), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -1;
	c->page = p;
	c->known = 0;
	return c->page->magic == GSWITCH_CLOCK_MAGIC ? 0 : -1;
}

/* The interval at an instant of CLOCK_MONOTONIC, in ns since 1970. Its beginning never goes
 * back while the root is the same. Returns less than 0 if there is none: see above. */
static inline int gswitch_clock_at(struct gswitch_clock *c, int64_t monotonic, int64_t *earliest, int64_t *latest)
{
	const struct gswitch_clock_page *p = c->page;
	int64_t at, now, eps, drift, span;
	uint64_t turn, root;
	int looks = 0;

	do {
		if (looks == GSWITCH_CLOCK_LOOKS)
			return GSWITCH_CLOCK_HALF;
		if (looks++ >= GSWITCH_CLOCK_AT_ONCE)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, 0);
		turn = atomic_load(&p->turn);
		at = atomic_load(&p->at);
		now = atomic_load(&p->time);
		eps = atomic_load(&p->eps);
		drift = atomic_load(&p->drift);
		root = atomic_load(&p->root);
	} while (turn & 1 || atomic_load(&p->turn) != turn);
	if (eps < 0)
		return GSWITCH_CLOCK_UNKNOWN;
	span = monotonic > at ? monotonic - at : 0;
	eps += span / 1000000000 * drift + (span % 1000000000 * drift + 999999999) / 1000000000;
	*earliest = now + span - eps;
	*latest = now + span + eps;
	if (c->known && c->root == root && *earliest < c->floor)
		*earliest = c->floor;
	if (*latest < *earliest)
		*latest = *earliest;
	c->known = 1;
	c->root = root;
	c->floor = *earliest;
	return 0;
}

static inline int gswitch_clock_now(struct gswitch_clock *c, int64_t *earliest, int64_t *latest)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return gswitch_clock_at(c, (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, earliest, latest);
}

#endif
