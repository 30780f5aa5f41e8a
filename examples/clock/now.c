/* Prints the interval in which the time lies, by the page of a daemon:
 *	cc -std=gnu11 -I ../../clocktime -o now now.c && ./now /run/ghost/h1.clock
 * Further arguments are instants of CLOCK_MONOTONIC in nanoseconds, in place of now. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswitch_clock.h"

int main(int n, char **args)
{
	struct gswitch_clock c;
	int64_t earliest, latest;
	int known;

	if (n < 2 || gswitch_clock_open(&c, args[1]) < 0) {
		fprintf(stderr, "usage: now PAGE [MONOTONIC...]; the page is the .clock file of a daemon\n");
		return 2;
	}
	for (int i = 2; i < n || i == 2; i++) {
		known = i < n ? gswitch_clock_at(&c, strtoll(args[i], 0, 10), &earliest, &latest) : gswitch_clock_now(&c, &earliest, &latest);
		if (known < 0) {
			fprintf(stderr, known == GSWITCH_CLOCK_HALF ? "the page remains half written: its daemon is gone, or is stopped\n" : "the clock is not synchronised\n");
			return 1;
		}
		printf("%" PRId64 " %" PRId64 "\n", earliest, latest);
	}
	return 0;
}
