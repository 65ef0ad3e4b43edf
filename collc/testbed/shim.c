/* Preloaded: who gives way sleeps for a moment.
 *
 * An MPI that waits polls, and between polls hands the processor to whoever is next by sched_yield(). With more ranks
 * than processors that is mostly another one that polls, and those with work wait for their turn. Sleepers do not
 * take turns. The time grows while nothing else happens and begins anew after a pause between two calls. */
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>

/* Where links are the bottleneck, polls cost more than what they might see sooner. */
#ifndef PATIENT
#define PATIENT 1
#endif

enum { SHORTEST = 50000, LONGEST = PATIENT ? 1600000 : 400000, PAUSE = PATIENT ? 1000000 : 300000 };

int sched_yield(void)
{
    static __thread struct timespec last;
    static __thread long sleep = SHORTEST;
    struct timespec now, pause = {0, 0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((now.tv_sec - last.tv_sec) * 1000000000L + now.tv_nsec - last.tv_nsec > PAUSE)
        sleep = SHORTEST;
    else if (sleep < LONGEST)
        sleep *= 2;
    pause.tv_nsec = sleep;
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_MONOTONIC, &last);
    return 0;
}
