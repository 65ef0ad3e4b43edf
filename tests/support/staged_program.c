/* Nonblocking and persistent collectives with a count for each rank, of an unmodified program: some ranks have no data, or
 * one rank has all; requests end in any order, from threads, beside messages, after their communicator and types are freed.
 * Runs on four ranks, prints what is wrong, and ends with status 0.
 */
#define _POSIX_C_SOURCE 200112L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include "persistent.h"

enum { N = 4, ROOM = 500, MANY = 21 };
enum { ALLTOALLV, ALLTOALLW, GATHERV, SCATTERV, ALLGATHERV, REDUCE_SCATTER, ALLREDUCE, KINDS };
enum { BLOCKING, BEGUN, REPEATED };
enum { MIXED, ZEROS, LOPSIDED, EMPTY, SHAPES };

static int rank, checks, failures;

static void expect(int ok, const char *what, int line)
{
    __sync_fetch_and_add(&checks, 1);
    if (ok)
        return;
    __sync_fetch_and_add(&failures, 1);
    printf("rank %d line %d: %s\n", rank, line, what);
    fflush(stdout);
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

/* One call: counts, places (in ints), and what is due. Everything in it is another one on each rank. */
struct task {
    int kind, shape, in_place, salt, large;
    int sent[N], from[N], received[N], to[N];
    int sent_bytes[N], received_bytes[N];
#if MPI_VERSION >= 4
    MPI_Count wide_sent[N], wide_received[N];
    MPI_Aint far_from[N], far_to[N];
#endif
    MPI_Datatype types[N];
    int data[ROOM], got[ROOM], due[ROOM];
};

static int amount(int from, int to, int shape)
{
    switch (shape) {
    case MIXED: return 2 + (from + to) % 3 + from * to % 2;
    case ZEROS: return (from + to) % 3 == 0 ? 0 : 5;
    case LOPSIDED: return from * to == 2 || (from == 2 && to == 2) ? 60 : 0;
    default: return 0;
    }
}

/* What rank `from` has for rank `to`. */
static int value(const struct task *t, int from, int to, int k)
{
    return 100000 * t->salt + 10000 * from + 1000 * to + k;
}

static int whole(const struct task *t)
{
    return t->kind == ALLTOALLV || t->kind == ALLTOALLW;
}

/* Elements that one rank has for another. */
static int number(const struct task *t, int from, int to)
{
    if (whole(t))
        return amount(from, to, t->shape);
    return t->kind == GATHERV || t->kind == ALLGATHERV ? amount(from, from, t->shape) : amount(to, to, t->shape);
}

static int step(const struct task *t, int peer)
{
    return t->kind == ALLTOALLW && !t->in_place && peer % 2 ? 2 : 1;
}

/* Lays blocks out: those that are sent one after the other, those that are received backwards, with room between. */
static void lay_out(struct task *t)
{
    int r, at = 0, back = 0;

    for (r = 0; r < N; r++) {
        int r_back = t->kind == REDUCE_SCATTER ? r : N - 1 - r;

        t->sent[r] = number(t, rank, r);
        t->received[r_back] = number(t, t->kind == REDUCE_SCATTER ? rank : r_back, t->kind == REDUCE_SCATTER ? r_back : rank);
        t->from[r] = at;
        t->to[r_back] = back;
        at += t->sent[r] * step(t, r) + (t->kind != REDUCE_SCATTER);
        back += t->received[r_back] * step(t, r_back) + (t->kind != REDUCE_SCATTER);
    }
    for (r = 0; r < N; r++) {
        t->sent_bytes[r] = t->from[r] * (int)sizeof(int);
        t->received_bytes[r] = t->to[r] * (int)sizeof(int);
#if MPI_VERSION >= 4
        t->wide_sent[r] = t->sent[r], t->wide_received[r] = t->received[r];
        t->far_from[r] = t->kind == ALLTOALLW ? t->sent_bytes[r] : t->from[r];
        t->far_to[r] = t->kind == ALLTOALLW ? t->received_bytes[r] : t->to[r];
#endif
    }
}

static void put(const struct task *t, int *where, int at, int gap, int from, int to)
{
    int k;

    for (k = 0; k < number(t, from, to); k++)
        where[at + k * gap] = value(t, from, to, k);
}

/* Fills the buffers for the next turn. */
static void fill(struct task *t, int salt)
{
    int r, k, receives = t->kind != GATHERV || rank == 0;

    t->salt = salt;
    for (k = 0; k < ROOM; k++)
        t->data[k] = t->got[k] = -1;
    for (r = 0; r < N && (whole(t) || (t->kind == SCATTERV && rank == 0)); r++)
        put(t, t->data, t->from[r], step(t, r), rank, r);
    if (t->kind == GATHERV || t->kind == ALLGATHERV)
        put(t, t->data, 0, 1, rank, 0);
    if (t->kind == REDUCE_SCATTER || t->kind == ALLREDUCE)
        for (k = 0; k < ROOM / 2; k++)
            t->data[k] = value(t, rank, 0, k);
    if (t->in_place && whole(t))
        for (r = 0; r < N; r++)
            put(t, t->got, t->to[r], step(t, r), rank, r);
    if (t->in_place && (t->kind == ALLGATHERV || (t->kind == GATHERV && rank == 0)))
        put(t, t->got, t->to[rank], 1, rank, 0);
    if (t->in_place && (t->kind == REDUCE_SCATTER || t->kind == ALLREDUCE))
        memcpy(t->got, t->data, sizeof t->got);
    memcpy(t->due, t->got, sizeof t->due);
    if (whole(t) || ((t->kind == GATHERV || t->kind == ALLGATHERV) && receives))
        for (r = 0; r < N; r++)
            put(t, t->due, t->to[r], step(t, r), r, whole(t) ? rank : 0);
    if (t->kind == SCATTERV && !(rank == 0 && t->in_place))
        put(t, t->due, 0, 1, 0, rank);
    if (t->kind == REDUCE_SCATTER || t->kind == ALLREDUCE)
        for (k = 0; k < (t->kind == ALLREDUCE ? 30 : t->received[rank]); k++)
            for (r = t->due[k] = 0; r < N; r++)
                t->due[k] += value(t, r, 0, k + (t->kind == ALLREDUCE ? 0 : t->to[rank]));
}

static void check(struct task *t, int line)
{
    if (t->kind == REDUCE_SCATTER && t->in_place) /* the rest is the MPI's to use */
        memcpy(t->got + t->received[rank], t->due + t->received[rank], sizeof t->got - t->received[rank] * sizeof(int));
    expect(memcmp(t->got, t->due, sizeof t->got) == 0, "wrong data", line);
}

static void prepare(struct task *t, int kind, int shape, int in_place, int large, MPI_Datatype gap)
{
    int r;

    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->shape = shape;
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION == 4
    t->shape = shape == EMPTY ? ZEROS : shape; /* its own MPI_Igatherv does not end without data */
#endif
    t->in_place = in_place;
#ifdef OPEN_MPI
    t->in_place &= kind != ALLTOALLW || shape != LOPSIDED; /* its own MPI_Ialltoallw of 5.0 does not end then */
#endif
    t->large = large;
    for (r = 0; r < N; r++)
        t->types[r] = step(t, r) == 2 ? gap : MPI_INT; /* in place, Open MPI 5.0 has one type for both ends of a pair */
    lay_out(t);
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

#if MPI_VERSION >= 4
static int call_large(struct task *t, int form, MPI_Comm comm, MPI_Request *request)
{
    const void *send = t->in_place ? MPI_IN_PLACE : t->data;
    int root = rank == 0, own = number(t, rank, 0);

    switch (t->kind) {
    case ALLTOALLV:
        return FORMS(Alltoallv_c, Ialltoallv_c, Alltoallv_init_c, send, t->wide_sent, t->far_from, MPI_INT, t->got,
                     t->wide_received, t->far_to, MPI_INT);
    case ALLTOALLW:
        return FORMS(Alltoallw_c, Ialltoallw_c, Alltoallw_init_c, send, t->wide_sent, t->far_from, t->types, t->got,
                     t->wide_received, t->far_to, t->types);
    case GATHERV:
        return FORMS(Gatherv_c, Igatherv_c, Gatherv_init_c, root ? send : t->data, own, MPI_INT, t->got,
                     t->wide_received, t->far_to, MPI_INT, 0);
    case SCATTERV:
        return FORMS(Scatterv_c, Iscatterv_c, Scatterv_init_c, t->data, t->wide_sent, t->far_from, MPI_INT,
                     root && t->in_place ? MPI_IN_PLACE : t->got, number(t, 0, rank), MPI_INT, 0);
    case ALLGATHERV:
        return FORMS(Allgatherv_c, Iallgatherv_c, Allgatherv_init_c, send, own, MPI_INT, t->got, t->wide_received,
                     t->far_to, MPI_INT);
    case REDUCE_SCATTER:
        return FORMS(Reduce_scatter_c, Ireduce_scatter_c, Reduce_scatter_init_c, send, t->got, t->wide_received,
                     MPI_INT, MPI_SUM);
    default: return FORMS(Allreduce_c, Iallreduce_c, Allreduce_init_c, send, t->got, 30, MPI_INT, MPI_SUM);
    }
}
#endif

/* Lists that mean nothing on a rank are nowhere there. */
#define NOTHING ((void *)16)

static int call(struct task *t, int form, MPI_Comm comm, MPI_Request *request)
{
    const void *send = t->in_place ? MPI_IN_PLACE : t->data;
    int root = rank == 0, own = number(t, rank, 0), without = whole(t) && t->in_place;

#if MPI_VERSION >= 4
    if (t->large)
        return call_large(t, form, comm, request);
#endif
    switch (t->kind) {
    case ALLTOALLV:
        return FORMS(Alltoallv, Ialltoallv, Alltoallv_init, send, without ? NOTHING : t->sent,
                     without ? NOTHING : t->from, MPI_INT, t->got, t->received, t->to, MPI_INT);
    case ALLTOALLW:
        return FORMS(Alltoallw, Ialltoallw, Alltoallw_init, send, without ? NOTHING : t->sent,
                     without ? NOTHING : t->sent_bytes, without ? NOTHING : t->types, t->got, t->received, t->received_bytes,
                     t->types);
    case GATHERV:
        return FORMS(Gatherv, Igatherv, Gatherv_init, root ? send : t->data, own, MPI_INT, t->got,
                     root ? t->received : NOTHING, root ? t->to : NOTHING, root ? MPI_INT : MPI_DATATYPE_NULL, 0);
    case SCATTERV:
        return FORMS(Scatterv, Iscatterv, Scatterv_init, t->data, root ? t->sent : NOTHING, root ? t->from : NOTHING,
                     root ? MPI_INT : MPI_DATATYPE_NULL, root && t->in_place ? MPI_IN_PLACE : t->got,
                     number(t, 0, rank), MPI_INT, 0);
    case ALLGATHERV:
        return FORMS(Allgatherv, Iallgatherv, Allgatherv_init, send, own, MPI_INT, t->got, t->received, t->to, MPI_INT);
    case REDUCE_SCATTER:
        return FORMS(Reduce_scatter, Ireduce_scatter, Reduce_scatter_init, send, t->got, t->received, MPI_INT, MPI_SUM);
    default: return FORMS(Allreduce, Iallreduce, Allreduce_init, send, t->got, 30, MPI_INT, MPI_SUM);
    }
}

static MPI_Datatype with_gaps(void)
{
    MPI_Datatype type;

    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
    MPI_Type_commit(&type);
    return type;
}

/* Every kind in every form, alone. */
static void each(MPI_Comm comm, int form, MPI_Datatype gap)
{
    static struct task t;
    MPI_Request request;
    int kind, shape, in_place, round;

    for (kind = 0; kind < KINDS; kind++)
        for (shape = 0; shape < SHAPES; shape++)
            for (in_place = 0; in_place < 2; in_place++) {
                prepare(&t, kind, shape, in_place, rank % 2, gap);
                fill(&t, 1);
                EXPECT(call(&t, form, comm, &request) == MPI_SUCCESS);
                for (round = 0; round < 3; round++) {
                    if (form == REPEATED) {
                        fill(&t, round + 2);
                        EXPECT(MPI_Start(&request) == MPI_SUCCESS);
                    }
                    if (form != BLOCKING)
                        EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
                    check(&t, __LINE__);
                    if (form != REPEATED)
                        break;
                }
                if (form == REPEATED)
                    MPI_Request_free(&request);
            }
}

static void end(int way, int count, MPI_Request *requests)
{
    int indices[MANY + 2], left = count, done, flag = 0, at, k;

    switch (way % 5) {
    case 0: EXPECT(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS); break;
    case 1:
        for (k = count - 1; k >= 0; k--)
            EXPECT(MPI_Wait(&requests[k], MPI_STATUS_IGNORE) == MPI_SUCCESS);
        break;
    case 2:
        while (left-- > 0)
            EXPECT(MPI_Waitany(count, requests, &at, MPI_STATUS_IGNORE) == MPI_SUCCESS && at != MPI_UNDEFINED);
        break;
    case 3:
        for (; left > 0; left -= done)
            EXPECT(MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE) == MPI_SUCCESS && done > 0);
        break;
    default:
        while (!flag)
            EXPECT(MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    }
}

/* Calls of all kinds on one communicator, some of which are left to the MPI, with messages and a blocking call between. */
static void many(MPI_Comm comm, int round, MPI_Datatype gap)
{
    static struct task tasks[MANY];
    MPI_Request requests[MANY + 2];
    int k, got = -1, mine = rank, sum = 0;

    for (k = 0; k < MANY; k++) {
        prepare(&tasks[k], (5 * k + round) % KINDS, (k + round) % SHAPES, k % 3 == 0, (rank + k) % 2, gap);
        fill(&tasks[k], k);
        EXPECT(call(&tasks[k], BEGUN, comm, &requests[k]) == MPI_SUCCESS);
        if (k == MANY / 2)
            EXPECT(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == 6);
    }
    MPI_Irecv(&got, 1, MPI_INT, (rank + N - 1) % N, 5, comm, &requests[MANY]);
    MPI_Isend(&mine, 1, MPI_INT, (rank + 1) % N, 5, comm, &requests[MANY + 1]);
    end(rank + round, MANY + 2, requests);
    for (k = 0; k < MANY; k++)
        check(&tasks[k], __LINE__);
    EXPECT(got == (rank + N - 1) % N);
}

/* Communicator and type are freed while calls are under way; odd ranks begin them late. */
static void freed(MPI_Comm comm)
{
    static struct task tasks[KINDS * 2];
    MPI_Request requests[KINDS * 2];
    MPI_Datatype gap = with_gaps();
    MPI_Comm copy;
    int k, token = 0;

    MPI_Comm_dup(comm, &copy);
    if (rank % 2)
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 6, comm, MPI_STATUS_IGNORE);
    for (k = 0; k < KINDS * 2; k++) {
        prepare(&tasks[k], k % KINDS, k % 2 ? LOPSIDED : MIXED, 0, 0, gap);
        fill(&tasks[k], k);
        call(&tasks[k], BEGUN, copy, &requests[k]);
    }
    if (rank % 2 == 0)
        MPI_Send(&token, 1, MPI_INT, rank + 1, 6, comm);
    MPI_Type_free(&gap);
    MPI_Comm_free(&copy);
    MPI_Waitall(KINDS * 2, requests, MPI_STATUSES_IGNORE);
    for (k = 0; k < KINDS * 2; k++)
        check(&tasks[k], __LINE__);
}

/* A request is not complete before the last rank begins the call. Even ranks wait for it in its wait, odd ranks in a function
 * that no library wraps, and in a message that even ranks send after their wait. */
static void waits(MPI_Comm comm, int kind, int shape, MPI_Datatype gap)
{
    static struct task t;
    MPI_Request request;
    MPI_Message message;
    int flag = 0, early = 0, token = rank, k;

    prepare(&t, kind, shape, 0, 0, gap);
    fill(&t, 3);
    if (rank != 3)
        call(&t, BEGUN, comm, &request);
    for (k = 0; k < 50 && rank != 3; k++) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        early |= flag;
    }
    EXPECT(!early || kind == GATHERV || kind == SCATTERV || shape != MIXED); /* else they may have it all */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 3)
        call(&t, BEGUN, comm, &request);
    if (rank % 2) {
        MPI_Mprobe(rank - 1, 7, comm, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&token, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        EXPECT(token == rank - 1);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(&t, __LINE__);
    if (rank % 2 == 0)
        MPI_Send(&token, 1, MPI_INT, rank + 1, 7, comm);
}

/* A message is cancelled beside a call, which is not. Programs may not cancel collectives; under the library it does nothing. */
static void cancels(MPI_Comm comm, MPI_Datatype gap)
{
    static struct task t;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int got, cancelled = 0, k;

    for (k = 0; k < 3; k++) {
        prepare(&t, k == 2 ? ALLREDUCE : ALLTOALLV, MIXED, 0, 0, gap);
        fill(&t, 4 + k);
        if (rank == 1) /* the others cancel before it can be done */
            MPI_Barrier(comm);
        call(&t, BEGUN, comm, &requests[0]);
        MPI_Irecv(&got, 1, MPI_INT, rank, 99, comm, &requests[1]);
        MPI_Cancel(&requests[1]);
        if (getenv("CANCEL_ALL") != NULL)
            MPI_Cancel(&requests[0]);
        if (rank != 1)
            MPI_Barrier(comm);
        MPI_Waitall(2, requests, statuses);
        MPI_Test_cancelled(&statuses[1], &cancelled);
        EXPECT(cancelled);
        MPI_Test_cancelled(&statuses[0], &cancelled);
        EXPECT(!cancelled);
        if (cancelled) /* the thread would wait for ever */
            MPI_Abort(comm, 1);
        check(&t, __LINE__);
    }
}

static void *in_thread(void *where)
{
    MPI_Comm comm = *(MPI_Comm *)where;
    struct task *t = malloc(sizeof *t);
    MPI_Request request;
    int k;

    for (k = 0; k < 30; k++) {
        prepare(t, k % KINDS, k % SHAPES, 0, 0, MPI_INT);
        if (t->kind == ALLTOALLW)
            prepare(t, ALLTOALLV, k % SHAPES, 0, 0, MPI_INT);
        fill(t, k);
        call(t, BEGUN, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(t, __LINE__);
    }
    free(t);
    return NULL;
}

static void threads(void)
{
    MPI_Comm comms[3];
    pthread_t others[2];
    int k;

    for (k = 0; k < 3; k++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
    for (k = 0; k < 2; k++)
        pthread_create(&others[k], NULL, in_thread, &comms[k]);
    in_thread(&comms[2]);
    for (k = 0; k < 2; k++)
        pthread_join(others[k], NULL);
    for (k = 0; k < 3; k++)
        MPI_Comm_free(&comms[k]);
}

/* Calls on communicators with two groups are the MPI's. */
static void between_groups(void)
{
    MPI_Comm half, both;
    MPI_Request request;
    int counts[2], places[2] = {0, 1}, mine[2] = {rank, rank}, got[2] = {-1, -1};

    counts[0] = counts[1] = 1;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, (rank + 1) % 2, 8, &both);
    MPI_Ialltoallv(mine, counts, places, MPI_INT, got, counts, places, MPI_INT, both, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(got[0] == (rank + 1) % 2 && got[1] == (rank + 1) % 2 + 2);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static void all(MPI_Datatype gap)
{
    int k;

    each(MPI_COMM_WORLD, BLOCKING, gap);
    each(MPI_COMM_WORLD, BEGUN, gap);
    if (PERSISTENT)
        each(MPI_COMM_WORLD, REPEATED, gap);
    for (k = 0; k < 12; k++)
        many(MPI_COMM_WORLD, k, gap);
    if (getenv("KEEP_HANDLES") == NULL) /* Open MPI 5.0 uses types that were freed */
        freed(MPI_COMM_WORLD);
    for (k = 0; k < KINDS; k++)
        waits(MPI_COMM_WORLD, k, k % 3 ? MIXED : LOPSIDED, gap);
    cancels(MPI_COMM_WORLD, gap);
    between_groups();
}

int main(int argc, char **argv)
{
    int provided, sums[2], mine[2];
    MPI_Datatype gap;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gap = with_gaps();
    if (argc > 1) { /* persistent calls alone: Open MPI 4 does not end others of its own */
        each(MPI_COMM_WORLD, REPEATED, gap);
    } else {
        all(gap);
        if (provided == MPI_THREAD_MULTIPLE)
            threads();
    }
    MPI_Type_free(&gap);
    mine[0] = checks, mine[1] = failures;
    MPI_Reduce(mine, sums, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("checks %d failures %d\n", sums[0], sums[1]);
    MPI_Finalize();
    return 0;
}
