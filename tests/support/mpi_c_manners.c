/* What callers of generated collectives may rely on beyond right results: errors, isolation, clean-up, odd types.
 *
 * Runs on five ranks. The collectives are for four: `sums` (allreduce), `pieces` (reduce-scatter), `all` (allgather),
 * `swap` (alltoall), `news` (broadcast from 1), `total` (reduce to 2), `heap` (gather to 0), `deal` (scatter from 3).
 */
#define _POSIX_C_SOURCE 200112L

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "all.h"
#include "deal.h"
#include "heap.h"
#include "news.h"
#include "pieces.h"
#include "sums.h"
#include "swap.h"
#include "total.h"

enum { N = 4, MANY = 50000, SPOILED = 3 };

static int world_rank, rank, failures, checks;

static void expect(int ok, const char *what, int line)
{
    checks++;
    if (ok)
        return;
    failures++;
    printf("manners rank=%d line=%d failed: %s\n", world_rank, line, what);
    fflush(stdout);
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

/* ---- what the generated code asks of the MPI, counted; and made to fail */

static int duplicates, freed, fail_at, receives;

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    duplicates++;
    return PMPI_Comm_dup(comm, copy);
}

int MPI_Comm_free(MPI_Comm *comm)
{
    freed++;
    return PMPI_Comm_free(comm);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    if (fail_at > 0 && ++receives == fail_at)
        return MPI_ERR_OTHER;
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

/* ---- errors */

static void first_of_two(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    memcpy(inout, in, (size_t)*count * sizeof(int));
}

static void wrong_communicators(MPI_Comm four)
{
    int a[2 * N] = {0}, b[2 * N] = {0};
    MPI_Comm inter;

    EXPECT(sums(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_ERR_COMM);
    EXPECT(sums(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF) == MPI_ERR_COMM);
    EXPECT(sums(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL) == MPI_ERR_COMM);
    MPI_Intercomm_create(four, 0, MPI_COMM_WORLD, world_rank < N ? N : 0, 5, &inter);
    EXPECT(sums(a, b, 1, MPI_INT, MPI_SUM, inter) == MPI_ERR_COMM);
    EXPECT(all(a, b, 1, MPI_INT, MPI_SUM, inter) == MPI_ERR_COMM);
    PMPI_Comm_free(&inter);
}

static void wrong_arguments(MPI_Comm comm)
{
    int a[2 * N] = {1, 2, 3, 4, 5, 6, 7, 8}, b[2 * N] = {0};
    MPI_Op keep;
    MPI_Datatype pair;

    EXPECT(sums(a, b, -1, MPI_INT, MPI_SUM, comm) == MPI_ERR_COUNT);
    EXPECT(sums(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, comm) == MPI_ERR_TYPE);
    EXPECT(sums(a, b, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_OP);
    MPI_Op_create(first_of_two, 0, &keep);
    EXPECT(sums(a, b, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    EXPECT(sums(a, b, 1, MPI_INT, keep, comm) == MPI_ERR_OP); /* only the operation is another one */
    EXPECT(pieces(a, b, 1, MPI_INT, keep, comm) == MPI_ERR_OP);
    EXPECT(total(a, b, 1, MPI_INT, keep, comm) == MPI_ERR_OP);
    EXPECT(all(a, b, 1, MPI_INT, keep, comm) == MPI_SUCCESS); /* nothing is reduced: ignored */
    EXPECT(all(a, b, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_SUCCESS);
    MPI_Op_free(&keep);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = sums(a, b, 1, pair, MPI_SUM, comm), class;
    MPI_Error_class(error, &class);
    EXPECT(class == MPI_ERR_OP); /* a predefined operation on a derived type */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&pair);
}

static void wrong_buffers(MPI_Comm comm)
{
    int a[2 * N] = {0}, b[2 * N] = {0};

    EXPECT(sums(NULL, b, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(sums(a, NULL, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(sums(a, a, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(sums(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(pieces(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(all(NULL, b, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_BUFFER);
    EXPECT(all(b, b, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_BUFFER);
    EXPECT(swap(a, NULL, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_BUFFER);
    EXPECT(news(a, NULL, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_BUFFER);
    EXPECT(news(a, MPI_IN_PLACE, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_BUFFER);
    EXPECT(sums(NULL, NULL, 0, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    EXPECT(swap(NULL, NULL, 0, MPI_INT, MPI_OP_NULL, comm) == MPI_SUCCESS);
    /* Only the root may work in place; all others are told, without waiting for it. */
    if (rank != 2)
        EXPECT(total(MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    if (rank != 0)
        EXPECT(heap(MPI_IN_PLACE, b, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_BUFFER);
    if (rank != 3)
        EXPECT(deal(a, MPI_IN_PLACE, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_BUFFER);
    if (rank == 3)
        EXPECT(deal(NULL, b, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_BUFFER);
    if (rank == 0)
        EXPECT(heap(a, NULL, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_BUFFER);
}

/* Scratch for this many elements of this extent is more than can be had. */
static void no_memory(MPI_Comm comm)
{
    MPI_Datatype vast;
    int a[2] = {0}, b[2] = {0};
    MPI_Aint sizes[] = {(MPI_Aint)1 << 28, (MPI_Aint)1 << 40};
    int k;

    for (k = 0; k < 2; k++) {
        MPI_Type_create_resized(MPI_INT, 0, sizes[k], &vast);
        MPI_Type_commit(&vast);
        MPI_Op any;
        MPI_Op_create(first_of_two, 1, &any);
        EXPECT(pieces(a, b, INT_MAX, vast, any, comm) == MPI_ERR_NO_MEM);
        MPI_Op_free(&any);
        MPI_Type_free(&vast);
    }
    EXPECT(sums(&(int){rank}, a, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && a[0] == 6);
}

/* An MPI error in the middle comes back; the communicator's private duplicate is spoiled (and kept for ever, with the
 * messages left in it), others are not. Large messages are sent by MPI, and after an error small calls fail too. */
static void failing_mpi(MPI_Comm comm)
{
    static int many[MANY], sum[MANY];
    MPI_Comm mine;
    int a[N] = {1, 1, 1, 1}, b[N], at;

    for (at = 1; at <= SPOILED; at++) {
        PMPI_Comm_dup(comm, &mine);
        fail_at = at, receives = 0;
        EXPECT(sums(many, sum, MANY, MPI_INT, MPI_SUM, mine) == MPI_ERR_OTHER);
        fail_at = 0;
        EXPECT(sums(a, b, N, MPI_INT, MPI_SUM, mine) == MPI_ERR_OTHER);
        PMPI_Comm_free(&mine);
    }
    EXPECT(sums(a, b, N, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && b[3] == N);
}

/* ---- isolation and clean-up */

/* The caller's pending wildcard receive gets the caller's message and none of ours. */
static void messages_do_not_mix(MPI_Comm comm)
{
    static int a[MANY], b[MANY];
    int got = -1, k;
    MPI_Request request;
    MPI_Status status;

    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
    for (k = 0; k < MANY; k++)
        a[k] = rank + k;
    EXPECT(sums(a, b, MANY, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    for (k = 0; k < MANY && b[k] == 6 + 4 * k; k++)
        continue;
    EXPECT(k == MANY);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % N, 0, comm);
    MPI_Wait(&request, &status);
    EXPECT(got == (rank + 3) % N && status.MPI_SOURCE == got);
}

static void communicators_come_and_go(MPI_Comm comm)
{
    int k, before = duplicates - freed, first = duplicates;

    for (k = 0; k < 3; k++) {
        MPI_Comm copy, turned;
        int mine = rank, got[N] = {-1, -1, -1, -1}, place;

        PMPI_Comm_dup(comm, &copy);
        EXPECT(all(&mine, got, 1, MPI_INT, MPI_OP_NULL, copy) == MPI_SUCCESS && got[3] == 3);
        EXPECT(all(&mine, got, 1, MPI_INT, MPI_OP_NULL, copy) ==
               MPI_SUCCESS); /* no further duplicate */
        MPI_Comm_split(comm, 0, -rank, &turned);
        MPI_Comm_rank(turned, &place);
        EXPECT(place == N - 1 - rank);
        EXPECT(all(&mine, got, 1, MPI_INT, MPI_OP_NULL, turned) == MPI_SUCCESS && got[0] == 3 &&
               got[3] == 0);
        PMPI_Comm_free(&copy);
        PMPI_Comm_free(&turned);
    }
    EXPECT(duplicates - first == 6);
    EXPECT(duplicates - freed == before); /* freed with their owners */
}

/* ---- types */

/* Columns of a matrix: elements that interleave in memory. */
static void columns(MPI_Comm comm)
{
    enum { ROWS = 3, COLUMNS = 4 * 5 };
    int send[ROWS][COLUMNS], got[ROWS][COLUMNS], wrong = 0, r, c;
    MPI_Datatype column, single;

    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &single);
    MPI_Type_commit(&single);
    for (r = 0; r < ROWS; r++)
        for (c = 0; c < COLUMNS; c++)
            send[r][c] = 1000 * rank + 100 * r + c, got[r][c] = -1;
    EXPECT(swap(send, got, 5, single, MPI_OP_NULL, comm) == MPI_SUCCESS);
    EXPECT(swap(MPI_IN_PLACE, send, 5, single, MPI_OP_NULL, comm) == MPI_SUCCESS);
    for (r = 0; r < ROWS; r++)
        for (c = 0; c < COLUMNS; c++) {
            int from = c / 5, was = 1000 * from + 100 * r + 5 * rank + c % 5;

            wrong += got[r][c] != was || send[r][c] != was;
        }
    EXPECT(wrong == 0);
    MPI_Type_free(&single);
    MPI_Type_free(&column);
}

/* Element k lies k ints *before* the address given. */
static void backwards(MPI_Comm comm)
{
    MPI_Datatype back;
    int data[7], k, wrong = 0;

    MPI_Type_create_resized(MPI_INT, 0, -(MPI_Aint)sizeof(int), &back);
    MPI_Type_commit(&back);
    for (k = 0; k < 7; k++)
        data[k] = rank == 1 ? 10 + k : -1;
    EXPECT(news(MPI_IN_PLACE, &data[6], 7, back, MPI_OP_NULL, comm) == MPI_SUCCESS);
    for (k = 0; k < 7; k++)
        wrong += data[k] != 10 + k;
    EXPECT(wrong == 0);
    int mine[2] = {rank, rank + 10}, got[2 * N] = {0};
    EXPECT(heap(&mine[1], rank == 0 ? &got[2 * N - 1] : NULL, 2, back, MPI_OP_NULL, comm) ==
           MPI_SUCCESS);
    for (k = 0; k < N && rank == 0; k++)
        wrong += got[2 * N - 1 - 2 * k] != k + 10 || got[2 * N - 2 - 2 * k] != k;
    EXPECT(wrong == 0);
    MPI_Type_free(&back);
}

/* Absolute addresses: the buffer is MPI_BOTTOM, which is NULL. */
static void bottom(MPI_Comm comm)
{
    int value = rank == 1 ? 77 : 0, one = 1;
    MPI_Aint address;
    MPI_Datatype absolute;

    MPI_Get_address(&value, &address);
    MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &absolute);
    MPI_Type_commit(&absolute);
    EXPECT(news(MPI_IN_PLACE, MPI_BOTTOM, 1, absolute, MPI_OP_NULL, comm) == MPI_SUCCESS);
    EXPECT(value == 77);
    MPI_Type_free(&absolute);
}

static void nothing_in_elements(MPI_Comm comm)
{
    MPI_Datatype nothing;
    int a = 1, b = 2;

    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    EXPECT(all(&a, &b, 1000, nothing, MPI_OP_NULL, comm) == MPI_SUCCESS && a == 1 && b == 2);
    MPI_Type_free(&nothing);
}

/* A pair type of MPI's own, with padding. */
static void locations(MPI_Comm comm)
{
    struct {
        short value;
        int index;
    } mine, least;

    memset(&mine, 0, sizeof mine);
    mine.value = (short)(10 - rank % 2), mine.index = rank;
    EXPECT(sums(&mine, &least, 1, MPI_SHORT_INT, MPI_MINLOC, comm) == MPI_SUCCESS);
    EXPECT(least.value == 9 && least.index == 1);
}

int main(int argc, char **argv)
{
    MPI_Comm four;
    int sum, rest;

    alarm(120);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < N, world_rank, &four);
    MPI_Comm_rank(four, &rank);
    wrong_communicators(four);
    if (world_rank < N) {
        wrong_arguments(four);
        wrong_buffers(four);
        no_memory(four);
        failing_mpi(four);
        messages_do_not_mix(four);
        communicators_come_and_go(four);
        columns(four);
        backwards(four);
        bottom(four);
        nothing_in_elements(four);
        locations(four);
    }
    /* Not freed: `four`, so that MPI_Finalize finds its duplicate. */
    MPI_Reduce(&failures, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    rest = duplicates - freed - (world_rank < N ? SPOILED : 0);
    if (rest != 0)
        printf("manners rank=%d failed: %d duplicates were not freed\n", world_rank, rest);
    if (world_rank == 0)
        printf("manners-end checks=%d failures=%d\n", checks, sum);
    return 0;
}
