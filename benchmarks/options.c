/* The shortest times of some calls of a program; options.py runs it with options of `collc launch`.
 * A line for each: its name and microseconds. argv: repetitions of a time, times, of which the shortest counts:
 * short ones find moments in which the machine does nothing else.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20, RANKS = 64 };

static char a[MOST], b[MOST];
static int rank, ranks;

static void message(int bytes)
{
    MPI_Sendrecv(a, bytes, MPI_BYTE, (rank + 1) % ranks, 0, b, bytes, MPI_BYTE, (rank + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sum(int bytes)
{
    MPI_Allreduce(a, b, bytes / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static void later(int bytes)
{
    MPI_Request request;

    MPI_Iallreduce(a, b, bytes / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void lists(int bytes, int *counts, int *places)
{
    int k;

    for (k = 0; k < ranks; k++)
        counts[k] = bytes, places[k] = k * bytes;
}

static void each(int bytes)
{
    int counts[RANKS], places[RANKS];

    lists(bytes, counts, places);
    MPI_Alltoallv(a, counts, places, MPI_BYTE, b, counts, places, MPI_BYTE, MPI_COMM_WORLD);
}

static void each_later(int bytes)
{
    int counts[RANKS], places[RANKS];
    MPI_Request request;

    lists(bytes, counts, places);
    MPI_Ialltoallv(a, counts, places, MPI_BYTE, b, counts, places, MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void copy(int bytes)
{
    MPI_Comm comm;

    (void)bytes;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
}

static const struct {
    const char *name;
    void (*call)(int bytes);
    int bytes, share; /* share: of the repetitions */
} calls[] = {
    {"MPI_Sendrecv, 8 B", message, 8, 1}, {"MPI_Allreduce, 8 B", sum, 8, 1}, {"MPI_Allreduce, 64 KiB", sum, 65536, 8},
    {"MPI_Comm_dup and MPI_Comm_free", copy, 0, 32}, {"MPI_Iallreduce, 8 B", later, 8, 2},
    {"MPI_Iallreduce, 64 KiB", later, 65536, 16}, {"MPI_Alltoallv, 64 B", each, 64, 1},
    {"MPI_Alltoallv, 16 KiB", each, 16384, 8}, {"MPI_Ialltoallv, 64 B", each_later, 64, 2},
    {"MPI_Ialltoallv, 16 KiB", each_later, 16384, 16},
};

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? atoi(argv[1]) : 100, times = argc > 2 ? atoi(argv[2]) : 100, t, k;
    size_t c;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (c = 0; c < sizeof calls / sizeof *calls; c++) {
        double least = 1e9;

        for (t = 0; t < times; t++) {
            int number = 1 + repetitions / calls[c].share;
            double begin, taken;

            calls[c].call(calls[c].bytes);
            MPI_Barrier(MPI_COMM_WORLD);
            begin = MPI_Wtime();
            for (k = 0; k < number; k++)
                calls[c].call(calls[c].bytes);
            taken = (MPI_Wtime() - begin) / number;
            least = taken < least ? taken : least;
        }
        if (rank == 0)
            printf("%s\t%.3f\n", calls[c].name, 1e6 * least);
    }
    MPI_Finalize();
    return 0;
}
