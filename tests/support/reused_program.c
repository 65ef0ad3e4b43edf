/* A program that knows nothing of what is preloaded, and makes like calls on handles that name new objects: MPIs give
 * the handle of what was freed to what is made next.
 *
 * Prints "checks N failures N", of all ranks. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 12, MOST = 64 };

static int me, ranks, checks, failures;

static void expect(int found, int due)
{
    checks++;
    failures += found != due;
}

/* The same ranks in another order, or only some of them: what the last communicator had is wrong for this one. */
static void communicators(void)
{
    int round;

    for (round = 0; round < ROUNDS; round++) {
        int mine = me * 10, all[MOST], sum = 0, part = round % 3 == 2, turn = round % 2, rank, size, k;
        MPI_Comm comm;

        MPI_Comm_split(MPI_COMM_WORLD, part ? me / 2 : 0, turn ? -me : me, &comm);
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        for (k = 0; k < 3; k++) {
            MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
            expect(sum, part ? (me / 2 * 4 + 1) * 10 : ranks * (ranks - 1) * 5);
            MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
            expect(all[rank], mine);
            expect(all[0], (part ? me / 2 * 2 + turn : turn ? ranks - 1 : 0) * 10);
            MPI_Bcast(&mine, 1, MPI_INT, k % 2 ? size - 1 : 0, comm);
            expect(mine, all[k % 2 ? size - 1 : 0]);
            mine = me * 10;
        }
        MPI_Comm_free(&comm);
    }
}

/* Types of other sizes. */
static void types(void)
{
    int round, in[8], out[8 * MOST], k;

    for (round = 0; round < ROUNDS; round++) {
        int ints = 1 + round % 4;
        MPI_Datatype type;

        MPI_Type_contiguous(ints, MPI_INT, &type);
        MPI_Type_commit(&type);
        for (k = 0; k < 8; k++)
            in[k] = me * 100 + k;
        for (k = 0; k < 8 * MOST; k++)
            out[k] = -1;
        MPI_Allgather(in, 2, type, out, 2, type, MPI_COMM_WORLD);
        for (k = 0; k < 2 * ints * ranks; k++)
            expect(out[k], k / (2 * ints) * 100 + k % (2 * ints));
        expect(out[2 * ints * ranks], -1);
        MPI_Type_free(&type);
    }
}

/* Calls that differ from the last in one argument alone. */
static void arguments(void)
{
    int round, in[24], out[24 * MOST], k;
    double real = me + 0.25, sum = 0;

    for (round = 0; round < ROUNDS; round++) {
        int count = round % 2 ? 17 : 1;

        for (k = 0; k < 24; k++)
            in[k] = me * 100 + k;
        MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, MPI_COMM_WORLD);
        for (k = 0; k < count * ranks; k++)
            expect(out[k], k / count * 100 + k % count);
        MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        expect(out[0], ranks * (ranks - 1) * 50);
        sum = 0;
        MPI_Allreduce(&real, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        expect((int)(sum * 4), ranks * (ranks - 1) * 2 + ranks);
        MPI_Allreduce(in, out, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        expect(out[0], (ranks - 1) * 100);
    }
}

static void first(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int k;

    (void)type;
    for (k = 0; k < *count; k++)
        ((int *)inout)[k] = ((int *)in)[k];
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int k;

    (void)type;
    for (k = 0; k < *count; k++)
        ((int *)inout)[k] += ((int *)in)[k];
}

/* Operations that commute, and one that does not: its result is that of rank 0. */
static void operations(void)
{
    int round;

    for (round = 0; round < ROUNDS; round++) {
        int mine = me + 1, found = 0, adds = round % 2 == 0;
        MPI_Op op;

        MPI_Op_create(adds ? add : first, adds, &op);
        MPI_Allreduce(&mine, &found, 1, MPI_INT, op, MPI_COMM_WORLD);
        expect(found, adds ? ranks * (ranks + 1) / 2 : 1);
        MPI_Op_free(&op);
    }
}

int main(int argc, char **argv)
{
    int own[2], all[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    communicators();
    types();
    arguments();
    operations();
    own[0] = checks, own[1] = failures;
    PMPI_Reduce(own, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (me == 0)
        printf("checks %d failures %d\n", all[0], all[1]);
    MPI_Finalize();
    return 0;
}
