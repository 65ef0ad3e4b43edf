/* Times a collective of the preloaded library against the MPI's own (by its PMPI_ name), in turns, in one run.
 *
 *   latency SECONDS BYTES..
 *
 * Rank 0 prints for each size: bytes, the shortest time of each in microseconds, and the median of the ratio (the
 * MPI's own time by the library's: above 1 the library is faster) over all turns. A time is that of the slowest rank,
 * for one call of a batch. Results are compared before anything is timed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { TURNS = 401 };

static int ordered(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void call(int own, const int *send, int *recv, int count)
{
    if (own)
        PMPI_Allreduce(send, recv, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Allreduce(send, recv, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* Seconds of a call, of the slowest rank. */
static double batch(int own, const int *send, int *recv, int count, int calls)
{
    double begun, taken, slowest;
    int k;

    PMPI_Barrier(MPI_COMM_WORLD);
    begun = MPI_Wtime();
    for (k = 0; k < calls; k++)
        call(own, send, recv, count);
    taken = (MPI_Wtime() - begun) / calls;
    PMPI_Allreduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* Whether both give the same sums on this rank. */
static int agree(int *send, int *recv, int *other, int count, int rank)
{
    int k;

    for (k = 0; k < count; k++)
        send[k] = (rank + 1) * (k % 1000 + 1);
    memset(recv, 255, (size_t)count * sizeof *recv);
    call(0, send, recv, count);
    call(1, send, other, count);
    return memcmp(recv, other, (size_t)count * sizeof *recv) == 0;
}

static void measure(double seconds, const int *send, int *recv, int count, int rank)
{
    double ratios[TURNS], best[2] = {1e9, 1e9}, once, times[2];
    int calls, turns, turn;

    batch(0, send, recv, count, 2);
    once = batch(1, send, recv, count, 2) + batch(0, send, recv, count, 2);
    calls = (int)(2e-3 / once) + 1; /* about 2 ms: less than a time slice */
    turns = (int)(seconds / (once * calls)) + 5;
    turns = turns < TURNS ? turns : TURNS;
    PMPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
    PMPI_Bcast(&turns, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (turn = 0; turn < turns; turn++) {
        int own;

        for (own = 0; own < 2; own++) {
            int which = own ^ (turn & 1);

            times[which] = batch(which, send, recv, count, calls);
            best[which] = times[which] < best[which] ? times[which] : best[which];
        }
        ratios[turn] = times[1] / times[0];
    }
    qsort(ratios, (size_t)turns, sizeof *ratios, ordered);
    if (rank == 0)
        printf("%ld %.3f %.3f %.4f\n", (long)count * (long)sizeof *send, best[0] * 1e6, best[1] * 1e6,
               ratios[turns / 2]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rank, k;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (k = 2; k < argc; k++) {
        int count = atoi(argv[k]) / (int)sizeof(int), same, all;
        int *send = malloc((size_t)count * sizeof *send), *recv = malloc((size_t)count * sizeof *recv);
        int *other = malloc((size_t)count * sizeof *other);

        same = send != NULL && recv != NULL && other != NULL && agree(send, recv, other, count, rank);
        PMPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (all)
            measure(atof(argv[1]), send, recv, count, rank);
        else if (rank == 0)
            printf("wrong %s\n", argv[k]);
        free(send);
        free(recv);
        free(other);
    }
    MPI_Finalize();
    return 0;
}
