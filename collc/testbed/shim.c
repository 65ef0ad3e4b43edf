/* Preloaded: sched_yield() sleeps for a short time.
 *
 * A waiting MPI polls, and calls sched_yield() between polls. With more ranks than processors the next process is
 * mostly another one that polls, while processes with work wait. Sleeping processes use no processor time. The time
 * increases with consecutive calls, and starts again after a pause between two calls. */
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>

/* If links are the bottleneck, polls cost more than earlier notice of a message gains. */
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
