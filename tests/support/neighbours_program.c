/* Neighbourhood collectives of an unmodified program, on topologies of all kinds whose neighbours are those of a ring, of a
 * path, or others. Runs on four ranks, prints what is wrong, and ends with status 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#pragma GCC diagnostic ignored "-Wstringop-overread" /* MPI_UNWEIGHTED of Open MPI is no array */

#include "persistent.h"

enum { N = 4, ROOM = 200, MOST = 6 };
enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, KINDS };
enum { BLOCKING, BEGUN, REPEATED };

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

/* The neighbours of this rank, in the order of the communicator; MPI_PROC_NULL is one without data. Where two ranks are
 * neighbours several times, each block between them has its turn.
 */
struct around {
    int outs, ins, to[MOST], from[MOST], to_turn[MOST], from_turn[MOST];
};

struct task {
    int kind, salt, large;
    int sent[MOST], received[MOST], sent_at[MOST], received_at[MOST];
    MPI_Aint far_sent_at[MOST], far_received_at[MOST];
#if MPI_VERSION >= 4
    MPI_Count wide_sent[MOST], wide_received[MOST];
#endif
    MPI_Datatype sent_types[MOST], received_types[MOST];
    int data[ROOM], got[ROOM], due[ROOM];
};

static int amount(const struct task *t, int from, int to, int turn)
{
    if (t->kind == ALLGATHER || t->kind == ALLTOALL)
        return 3;
    return t->kind == ALLGATHERV ? 1 + from : (from + 2 * to + turn) % 4; /* some are empty */
}

static int value(const struct task *t, int from, int to, int turn, int k)
{
    return 10000 * t->salt + 1000 * from + (t->kind <= ALLGATHERV ? 0 : 100 * to + 10 * turn) + k;
}

static int gap_of(const struct task *t, int peer)
{
    return t->kind == ALLTOALLW && peer % 2 ? 2 : 1;
}

static void prepare(struct task *t, int kind, int large, const struct around *a, MPI_Datatype gap)
{
    int k, at = 0;

    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->large = large;
    for (k = 0; k < a->outs; k++) {
        t->sent[k] = a->to[k] == MPI_PROC_NULL && kind != ALLTOALL ? 0 : amount(t, rank, a->to[k], a->to_turn[k]);
        t->sent_at[k] = at;
        t->sent_types[k] = gap_of(t, a->to[k]) == 2 ? gap : MPI_INT;
        at += t->sent[k] * gap_of(t, a->to[k]) + (kind > ALLTOALL);
    }
    for (k = at = 0; k < a->ins; k++) {
        t->received[k] = a->from[k] == MPI_PROC_NULL ? (kind == ALLGATHER || kind == ALLTOALL) * 3
                                                   : amount(t, a->from[k], rank, a->from_turn[k]);
        t->received_at[k] = at;
        t->received_types[k] = gap_of(t, a->from[k]) == 2 ? gap : MPI_INT;
        at += t->received[k] * gap_of(t, a->from[k]) + (kind == ALLGATHERV || kind > ALLTOALL);
    }
    for (k = 0; k < MOST; k++) {
        int bytes = kind == ALLTOALLW ? sizeof(int) : 1;

        t->far_sent_at[k] = t->sent_at[k] * bytes, t->far_received_at[k] = t->received_at[k] * bytes;
#if MPI_VERSION >= 4
        t->wide_sent[k] = t->sent[k], t->wide_received[k] = t->received[k];
#endif
    }
}

static void fill(struct task *t, int salt, const struct around *a)
{
    int n, k;

    t->salt = salt;
    for (k = 0; k < ROOM; k++)
        t->data[k] = t->got[k] = t->due[k] = -1;
    for (k = 0; k < amount(t, rank, 0, 0) && t->kind <= ALLGATHERV; k++)
        t->data[k] = value(t, rank, 0, 0, k);
    for (n = 0; n < a->outs && t->kind > ALLGATHERV; n++)
        for (k = 0; k < t->sent[n]; k++)
            t->data[t->sent_at[n] + k * gap_of(t, a->to[n])] = value(t, rank, a->to[n], a->to_turn[n], k);
    for (n = 0; n < a->ins; n++)
        for (k = 0; k < t->received[n] && a->from[n] != MPI_PROC_NULL; k++)
            t->due[t->received_at[n] + k * gap_of(t, a->from[n])] = value(t, a->from[n], rank, a->from_turn[n], k);
}

#if PERSISTENT
#define FORMS(blocking, begun, repeated, ...) \
    (form == BLOCKING ? MPI_##blocking(__VA_ARGS__, comm) \
     : form == BEGUN ? MPI_##begun(__VA_ARGS__, comm, request) \
                     : MPI_##repeated(__VA_ARGS__, comm, MPI_INFO_NULL, request))
#else
#define FORMS(blocking, begun, repeated, ...) \
    (form == BLOCKING ? MPI_##blocking(__VA_ARGS__, comm) : MPI_##begun(__VA_ARGS__, comm, request))
#endif

static int call(struct task *t, int form, MPI_Comm comm, MPI_Request *request)
{
    int own = amount(t, rank, 0, 0);

#if MPI_VERSION >= 4
    if (t->large)
        switch (t->kind) {
        case ALLGATHER:
            return FORMS(Neighbor_allgather_c, Ineighbor_allgather_c, Neighbor_allgather_init_c, t->data, own, MPI_INT,
                         t->got, 3, MPI_INT);
        case ALLGATHERV:
            return FORMS(Neighbor_allgatherv_c, Ineighbor_allgatherv_c, Neighbor_allgatherv_init_c, t->data, own, MPI_INT,
                         t->got, t->wide_received, t->far_received_at, MPI_INT);
        case ALLTOALL:
            return FORMS(Neighbor_alltoall_c, Ineighbor_alltoall_c, Neighbor_alltoall_init_c, t->data, 3, MPI_INT,
                         t->got, 3, MPI_INT);
        case ALLTOALLV:
            return FORMS(Neighbor_alltoallv_c, Ineighbor_alltoallv_c, Neighbor_alltoallv_init_c, t->data, t->wide_sent,
                         t->far_sent_at, MPI_INT, t->got, t->wide_received, t->far_received_at, MPI_INT);
        default:
            return FORMS(Neighbor_alltoallw_c, Ineighbor_alltoallw_c, Neighbor_alltoallw_init_c, t->data, t->wide_sent,
                         t->far_sent_at, t->sent_types, t->got, t->wide_received, t->far_received_at, t->received_types);
        }
#endif
    switch (t->kind) {
    case ALLGATHER:
        return FORMS(Neighbor_allgather, Ineighbor_allgather, Neighbor_allgather_init, t->data, own, MPI_INT, t->got, 3,
                     MPI_INT);
    case ALLGATHERV:
        return FORMS(Neighbor_allgatherv, Ineighbor_allgatherv, Neighbor_allgatherv_init, t->data, own, MPI_INT, t->got,
                     t->received, t->received_at, MPI_INT);
    case ALLTOALL:
        return FORMS(Neighbor_alltoall, Ineighbor_alltoall, Neighbor_alltoall_init, t->data, 3, MPI_INT, t->got, 3,
                     MPI_INT);
    case ALLTOALLV:
        return FORMS(Neighbor_alltoallv, Ineighbor_alltoallv, Neighbor_alltoallv_init, t->data, t->sent, t->sent_at,
                     MPI_INT, t->got, t->received, t->received_at, MPI_INT);
    default:
        return FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init, t->data, t->sent, t->far_sent_at,
                     t->sent_types, t->got, t->received, t->far_received_at, t->received_types);
    }
}

static void check(const struct task *t, int line)
{
    expect(memcmp(t->got, t->due, sizeof t->got) == 0, "wrong data", line);
}

/* All kinds in all forms, alone and at once, begun in one order and ended in another. */
static void each(MPI_Comm comm, const struct around *a)
{
    static struct task t[2 * KINDS];
    MPI_Request requests[2 * KINDS];
    MPI_Datatype gap;
    int form, k, round, at;

    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gap);
    MPI_Type_commit(&gap);
    for (form = BLOCKING; form <= (PERSISTENT ? REPEATED : BEGUN); form++) {
        for (k = 0; k < 2 * KINDS; k++) {
            prepare(&t[k], k % KINDS, rank % 2, a, gap);
            fill(&t[k], k, a);
            EXPECT(call(&t[k], form, comm, &requests[k]) == MPI_SUCCESS);
        }
        if (form == REPEATED && getenv("KEEP_HANDLES") == NULL)
            MPI_Type_free(&gap); /* the requests need it */
        for (round = 0; round < (form == REPEATED ? 3 : 1); round++) {
            for (k = 0; k < 2 * KINDS && form == REPEATED; k++)
                fill(&t[k], k + 20 * round, a);
            if (form == REPEATED)
                MPI_Startall(2 * KINDS, requests);
            for (k = 0; k < 2 * KINDS && form != BLOCKING; k++)
                EXPECT(MPI_Waitany(2 * KINDS, requests, &at, MPI_STATUS_IGNORE) == MPI_SUCCESS && at != MPI_UNDEFINED);
            for (k = 0; k < 2 * KINDS; k++)
                check(&t[k], __LINE__);
        }
        for (k = 0; k < 2 * KINDS && form == REPEATED; k++)
            MPI_Request_free(&requests[k]);
    }
    if (gap != MPI_DATATYPE_NULL)
        MPI_Type_free(&gap);
}

static void on_cart(int periodic)
{
    struct around a = {2, 2, {0}, {0}, {0}, {0}};
    int dims[1] = {N};
    MPI_Comm comm;

    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, &periodic, 0, &comm);
    MPI_Cart_shift(comm, 0, 1, &a.from[0], &a.from[1]);
    memcpy(a.to, a.from, sizeof a.to);
    each(comm, &a);
    MPI_Comm_free(&comm);
}

/* Both directions of a dimension of 2 lead to the same rank, of 1 to the rank itself: what is sent in one arrives from the
 * other.
 */
static void on_small_dimensions(int first, int second, int wraps)
{
    struct around a = {4, 4, {0}, {0}, {0}, {0}};
    int dims[2] = {first, second}, periodic[2] = {wraps, wraps}, k;
    MPI_Comm comm;

    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 0, &comm);
    for (k = 0; k < 2; k++) {
        MPI_Cart_shift(comm, k, 1, &a.from[2 * k], &a.from[2 * k + 1]);
        a.to_turn[2 * k + 1] = a.from_turn[2 * k] = wraps && dims[k] <= 2;
    }
    memcpy(a.to, a.from, sizeof a.to);
    each(comm, &a);
    MPI_Comm_free(&comm);
}

/* A ring with two edges to the right, and one from each rank to itself. */
static void on_double_edges(void)
{
    int left = (rank + N - 1) % N, right = (rank + 1) % N;
    struct around a = {4, 4, {right, left, rank, right}, {left, left, rank, right}, {0, 0, 0, 1}, {0, 1, 0, 0}};
    MPI_Comm comm;

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, a.ins, a.from, MPI_UNWEIGHTED, a.outs, a.to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    each(comm, &a);
    MPI_Comm_free(&comm);
}

/* A ring whose ranks list their neighbours in another order each; `apart` is the distance of neighbours. */
static void on_graph(int apart, int swapped)
{
    struct around a = {2, 2, {0}, {0}, {0}, {0}};
    MPI_Comm comm;
    int left = (rank + N - apart) % N, right = (rank + apart) % N;

    a.to[0] = a.from[1] = rank % 2 ? left : right;
    a.to[1] = a.from[0] = rank % 2 ? right : left;
    if (swapped)
        a.from[0] = a.to[0], a.from[1] = a.to[1];
    if (apart == 2) /* one neighbour */
        a.outs = a.ins = 1;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, a.ins, a.from, MPI_UNWEIGHTED, a.outs, a.to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    each(comm, &a);
    MPI_Comm_free(&comm);
}

/* All other ranks are neighbours. */
static void on_complete_graph(void)
{
    struct around a = {N - 1, N - 1, {0}, {0}, {0}, {0}};
    MPI_Comm comm;
    int k;

    for (k = 0; k < N - 1; k++)
        a.to[k] = a.from[k] = (rank + 1 + k) % N;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, a.ins, a.from, MPI_UNWEIGHTED, a.outs, a.to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    each(comm, &a);
    MPI_Comm_free(&comm);
}

static void on_old_graph(void)
{
    struct around a = {2, 2, {0}, {0}, {0}, {0}};
    int ends[N] = {2, 4, 6, 8}, edges[2 * N] = {1, 3, 2, 0, 1, 3, 0, 2};
    MPI_Comm comm;

    memcpy(a.to, edges + 2 * rank, 2 * sizeof(int));
    memcpy(a.from, edges + 2 * rank, 2 * sizeof(int));
    MPI_Graph_create(MPI_COMM_WORLD, N, ends, edges, 0, &comm);
    each(comm, &a);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    int sums[2], mine[2], provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    on_cart(1);
    on_cart(0);
    on_graph(1, 0);
    on_graph(1, 1);
    on_graph(2, 0);
    on_old_graph();
    on_complete_graph();
    if (getenv("DISTINCT") == NULL) {
        on_small_dimensions(4, 1, 1);
        on_small_dimensions(2, 2, 1);
        on_small_dimensions(2, 2, 0);
        on_double_edges();
    }
    mine[0] = checks, mine[1] = failures;
    MPI_Reduce(mine, sums, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("checks %d failures %d\n", sums[0], sums[1]);
    MPI_Finalize();
    return 0;
}
