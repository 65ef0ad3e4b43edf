/* Collectives with a count for each rank, of an unmodified program: some ranks have no data, data have gaps, stand in
 * place and in any order. Runs on four ranks, prints what is wrong, and ends with status 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { N = 4, MOST = 400 };

static int rank, checks, failures;

static void expect(int ok, const char *what, int line)
{
    checks++;
    if (ok)
        return;
    failures++;
    printf("rank %d line %d: %s\n", rank, line, what);
    fflush(stdout);
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

/* What rank `from` has for rank `to`. */
static int value(int from, int to, int k)
{
    return 10000 * from + 1000 * to + k;
}

/* Counts of four ranks, and places: one after the other, with room between, or backwards. */
struct shape {
    int counts[N];
    int places[N];
};

static struct shape shape(int which, int layout)
{
    static const int counts[][N] = {{3, 5, 4, 2}, {6, 0, 3, 7}, {4, 4, 4, 4}, {1, 1, 1, 2}, {0, 9, 0, 9}};
    struct shape s;
    int k, at = 0;

    for (k = 0; k < N; k++) {
        int here = layout == 2 ? N - 1 - k : k;

        s.counts[here] = counts[which % 5][here];
        s.places[here] = at;
        at += s.counts[here] + (layout == 1 ? 2 : 0);
    }
    return s;
}

/* A type of one int with a gap of one int, or none. */
static MPI_Datatype elements(int gap)
{
    MPI_Datatype type = MPI_INT;

    if (gap) {
        MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
        MPI_Type_commit(&type);
    }
    return type;
}

static int data[N * MOST], got[N * MOST], due[N * MOST];

static void clear(void)
{
    int k;

    for (k = 0; k < N * MOST; k++)
        data[k] = got[k] = due[k] = -1;
}

static void check(int line)
{
    expect(memcmp(got, due, sizeof got) == 0, "wrong data", line);
}

static void allgatherv(MPI_Comm comm, int which, int layout, int gap, int in_place)
{
    struct shape s = shape(which, layout);
    MPI_Datatype type = elements(gap);
    int r, k, step = gap + 1;

    clear();
    for (r = 0; r < N; r++)
        for (k = 0; k < s.counts[r]; k++)
            due[(s.places[r] + k) * step] = value(r, 0, k);
    for (k = 0; k < s.counts[rank]; k++)
        data[k] = value(rank, 0, k);
    if (in_place)
        for (k = 0; k < s.counts[rank]; k++)
            got[(s.places[rank] + k) * step] = value(rank, 0, k);
#if MPI_VERSION >= 4
    if (rank % 2) { /* large counts on some ranks: the same call */
        MPI_Count counts[N];
        MPI_Aint places[N];

        for (r = 0; r < N; r++)
            counts[r] = s.counts[r], places[r] = s.places[r];
        MPI_Allgatherv_c(in_place ? MPI_IN_PLACE : data, s.counts[rank], MPI_INT, got, counts, places, type, comm);
    } else
#endif
        MPI_Allgatherv(in_place ? MPI_IN_PLACE : data, s.counts[rank], MPI_INT, got, s.counts, s.places, type, comm);
    check(__LINE__);
    if (gap)
        MPI_Type_free(&type);
}

static void reduce_scatter(MPI_Comm comm, int which, int in_place)
{
    struct shape s = shape(which, 0);
    int r, k, whole = s.places[N - 1] + s.counts[N - 1];

    clear();
    for (k = 0; k < whole; k++)
        data[k] = got[k] = value(rank, 0, k);
    if (!in_place)
        memset(got, -1, sizeof got);
    memcpy(due, got, sizeof due);
    for (k = 0; k < s.counts[rank]; k++)
        for (r = due[k] = 0; r < N; r++)
            due[k] += value(r, 0, s.places[rank] + k);
    MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : data, got, s.counts, MPI_INT, MPI_SUM, comm);
    if (in_place) /* what stands behind is the MPI's to use */
        memcpy(got + s.counts[rank], due + s.counts[rank], sizeof got - s.counts[rank] * sizeof *got);
    check(__LINE__);
}

static void alltoallv(MPI_Comm comm, int which, int layout, int gap)
{
    struct shape to, from;
    MPI_Datatype type = elements(gap);
    int r, k, step = gap + 1;

    clear();
    to = shape(which + rank, layout);
    from = shape(which, layout);
    for (r = 0; r < N; r++) {
        for (k = 0; k < to.counts[r]; k++)
            data[to.places[r] + k] = value(rank, r, k);
        from.counts[r] = shape(which + r, layout).counts[rank];
        from.places[r] = 20 * r;
        for (k = 0; k < from.counts[r]; k++)
            due[(from.places[r] + k) * step] = value(r, rank, k);
    }
    MPI_Alltoallv(data, to.counts, to.places, MPI_INT, got, from.counts, from.places, type, comm);
    check(__LINE__);
    if (gap)
        MPI_Type_free(&type);
}

static void gatherv(MPI_Comm comm, int which, int layout, int in_place)
{
    struct shape s = shape(which, layout);
    int r, k;

    clear();
    for (k = 0; k < s.counts[rank]; k++)
        data[k] = value(rank, 0, k);
    if (rank == 0)
        for (r = 0; r < N; r++)
            for (k = 0; k < s.counts[r]; k++)
                due[s.places[r] + k] = value(r, 0, k);
    if (rank == 0 && in_place)
        memcpy(got + s.places[0], data, s.counts[0] * sizeof *got);
    MPI_Gatherv(rank == 0 && in_place ? MPI_IN_PLACE : data, s.counts[rank], MPI_INT, got, rank == 0 ? s.counts : NULL,
                rank == 0 ? s.places : NULL, MPI_INT, 0, comm);
    check(__LINE__);
}

static void scatterv(MPI_Comm comm, int which, int layout, int in_place)
{
    struct shape s = shape(which, layout);
    int r, k, stays = rank == 0 && in_place;

    clear();
    if (rank == 0)
        for (r = 0; r < N; r++)
            for (k = 0; k < s.counts[r]; k++)
                data[s.places[r] + k] = value(0, r, k);
    for (k = 0; k < s.counts[rank] && !stays; k++)
        due[k] = value(0, rank, k);
    MPI_Scatterv(data, rank == 0 ? s.counts : NULL, rank == 0 ? s.places : NULL, MPI_INT, stays ? MPI_IN_PLACE : got,
                 s.counts[rank], MPI_INT, 0, comm);
    check(__LINE__);
}

/* One rank has data, for one other: padded, they would be sixteen times as large. */
static void lopsided(MPI_Comm comm)
{
    int sent[N] = {0, 0, 0, 0}, received[N] = {0, 0, 0, 0}, places[N] = {0, 0, 0, 0}, k;

    clear();
    sent[1] = rank == 2 ? MOST : 0;
    received[2] = rank == 1 ? MOST : 0;
    for (k = 0; k < MOST; k++) {
        data[k] = value(2, 1, k);
        due[k] = rank == 1 ? data[k] : -1;
    }
    MPI_Alltoallv(data, sent, places, MPI_INT, got, received, places, MPI_INT, comm);
    check(__LINE__);
}

int main(int argc, char **argv)
{
    int which, layout, sums[2], mine[2];
    MPI_Comm comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (which = 0; which < 5; which++) {
        for (layout = 0; layout < 3; layout++) {
            allgatherv(comm, which, layout, layout % 2, 0);
            allgatherv(comm, which, layout, (layout + 1) % 2, 1);
            alltoallv(comm, which, layout, layout % 2);
            gatherv(comm, which, layout, which % 2);
            scatterv(comm, which, layout, which % 2);
        }
        reduce_scatter(comm, which, 0);
        reduce_scatter(comm, which, 1);
    }
    lopsided(comm);
    MPI_Comm_free(&comm);
    mine[0] = checks, mine[1] = failures;
    MPI_Reduce(mine, sums, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("checks %d failures %d\n", sums[0], sums[1]);
    MPI_Finalize();
    return 0;
}
