/* Nonblocking collectives of an unmodified program: all kinds at once, beside messages, from threads, on communicators
 * that end before them. Runs on four ranks, prints what is wrong, and ends with status 0.
 */
#define _POSIX_C_SOURCE 200112L

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include "persistent.h"

enum { N = 4, COUNT = 37, KINDS = 8, MANY = 3 * KINDS, ROUNDS = 12 };

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

struct buffers {
    int send[N * COUNT], recv[N * COUNT];
};

static int value(int from, int k, int salt)
{
    return 1000 * from + k + 7 * salt;
}

static int total(int k, int salt)
{
    return value(0, k, salt) + value(1, k, salt) + value(2, k, salt) + value(3, k, salt);
}

static void fill(struct buffers *b, int salt)
{
    int k;

    for (k = 0; k < N * COUNT; k++)
        b->send[k] = value(rank, k, salt), b->recv[k] = -1;
    if (rank == 0)
        memcpy(b->recv, b->send, sizeof b->recv);
}

static void begin(int kind, struct buffers *b, MPI_Comm comm, MPI_Request *request)
{
    const void *own = rank % 2 ? b->send : b->recv;
    int error = MPI_ERR_OTHER;

    if (kind == 0 && rank % 2 == 0)
        memcpy(b->recv, b->send, sizeof b->recv);
    switch (kind) {
    case 0:
#if MPI_VERSION >= 4
        if (rank == 1) { /* large counts on one rank: the same call */
            error = MPI_Iallreduce_c(own, b->recv, COUNT, MPI_INT, MPI_SUM, comm, request);
            break;
        }
#endif
        error = MPI_Iallreduce(own == b->send ? own : MPI_IN_PLACE, b->recv, COUNT, MPI_INT, MPI_SUM, comm, request);
        break;
    case 1: error = MPI_Ireduce_scatter_block(b->send, b->recv, COUNT, MPI_INT, MPI_SUM, comm, request); break;
    case 2: error = MPI_Iallgather(b->send, COUNT, MPI_INT, b->recv, COUNT, MPI_INT, comm, request); break;
    case 3: error = MPI_Ialltoall(b->send, COUNT, MPI_INT, b->recv, COUNT, MPI_INT, comm, request); break;
    case 4: error = MPI_Ibcast(b->recv, COUNT, MPI_INT, 0, comm, request); break;
    case 5: error = MPI_Ireduce(b->send, b->recv, COUNT, MPI_INT, MPI_SUM, 0, comm, request); break;
    case 6: error = MPI_Igather(b->send, COUNT, MPI_INT, b->recv, COUNT, MPI_INT, 0, comm, request); break;
    case 7: error = MPI_Iscatter(b->send, COUNT, MPI_INT, b->recv, COUNT, MPI_INT, 0, comm, request); break;
    }
    EXPECT(error == MPI_SUCCESS);
}

/* How many elements of a result are wrong. */
static int wrong(const struct buffers *b, int kind, int salt)
{
    int bad = 0, k, r;

    for (k = 0; k < COUNT; k++)
        switch (kind) {
        case 0: bad += b->recv[k] != total(k, salt); break;
        case 1: bad += b->recv[k] != total(rank * COUNT + k, salt); break;
        case 4: bad += b->recv[k] != value(0, k, salt); break;
        case 5: bad += rank == 0 && b->recv[k] != total(k, salt); break;
        case 7: bad += b->recv[k] != value(0, rank * COUNT + k, salt); break;
        default:
            for (r = 0; r < N; r++)
                if (kind != 6 || rank == 0)
                    bad += b->recv[r * COUNT + k] != value(r, kind == 3 ? rank * COUNT + k : k, salt);
        }
    return bad;
}

/* Ends requests in one of the ways that MPI has; which, every rank chooses by itself. */
static void end(int way, int number, MPI_Request *requests)
{
    int indices[MANY + 2], left = number, done, flag = 0, at, k;

    switch (way % 6) {
    case 0: EXPECT(MPI_Waitall(number, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS); break;
    case 1:
        for (k = number - 1; k >= 0; k--)
            EXPECT(MPI_Wait(&requests[k], MPI_STATUS_IGNORE) == MPI_SUCCESS);
        break;
    case 2:
        while (left-- > 0)
            EXPECT(MPI_Waitany(number, requests, &at, MPI_STATUS_IGNORE) == MPI_SUCCESS && at != MPI_UNDEFINED);
        break;
    case 3:
        for (; left > 0; left -= done)
            EXPECT(MPI_Waitsome(number, requests, &done, indices, MPI_STATUSES_IGNORE) == MPI_SUCCESS && done > 0);
        break;
    case 4:
        while (!flag)
            EXPECT(MPI_Testall(number, requests, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        break;
    case 5:
        for (; left > 0; left -= flag)
            EXPECT(MPI_Testany(number, requests, &at, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        break;
    }
    for (k = 0; k < number; k++)
        EXPECT(requests[k] == MPI_REQUEST_NULL);
}

static void many(MPI_Comm comm, int round)
{
    static struct buffers b[MANY];
    MPI_Request requests[MANY + 2];
    int k, bad = 0, got = -1, mine = rank, sum = 0;

    for (k = 0; k < MANY; k++) {
        fill(&b[k], k + round);
        begin((k + round) % KINDS, &b[k], comm, &requests[k]);
        if (k == MANY / 2 && round % 3 == 0)
            EXPECT(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == 6);
        if (k == MANY / 2 && round % 3 == 1)
            EXPECT(MPI_Scan(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == rank * (rank + 1) / 2);
        if (k == MANY / 3 && round % 3 == 2)
            MPI_Barrier(comm);
    }
    MPI_Irecv(&got, 1, MPI_INT, (rank + N - 1) % N, 5, comm, &requests[MANY]);
    MPI_Isend(&mine, 1, MPI_INT, (rank + 1) % N, 5, comm, &requests[MANY + 1]);
    end(rank + round, MANY + 2, requests);
    for (k = 0; k < MANY; k++)
        bad += wrong(&b[k], (k + round) % KINDS, k + round);
    EXPECT(bad == 0 && got == (rank + N - 1) % N);
}

/* Even ranks wait for the call first; odd ranks wait for a message that even ones send afterwards. */
static void message_after(MPI_Comm comm, int kind, int large)
{
    static struct buffers b;
    static int data[1 << 16], back[1 << 16];
    MPI_Request request;
    int number = large ? 1 << 16 : 1;

    fill(&b, 3);
    begin(kind, &b, comm, &request);
    if (rank % 2) {
        MPI_Status status;

        if (large)
            MPI_Probe(rank - 1, 9, comm, &status);
        MPI_Recv(back, number, MPI_INT, rank - 1, 9, comm, &status);
        EXPECT(status.MPI_SOURCE == rank - 1);
        MPI_Ssend(data, number, MPI_INT, rank - 1, 10, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(data, number, MPI_INT, rank + 1, 9, comm);
        MPI_Recv(back, number, MPI_INT, rank + 1, 10, comm, MPI_STATUS_IGNORE);
    }
    EXPECT(wrong(&b, kind, 3) == 0);
}

/* Odd ranks begin the call only after a message that even ranks send after they began it. */
static void begins_do_not_wait(MPI_Comm comm)
{
    struct buffers b;
    MPI_Request request;
    int token = 0;

    fill(&b, 4);
    if (rank % 2)
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 11, comm, MPI_STATUS_IGNORE);
    begin(0, &b, comm, &request);
    if (rank % 2 == 0)
        MPI_Send(&token, 1, MPI_INT, rank + 1, 11, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(wrong(&b, 0, 4) == 0);
}

/* A request is not complete while a rank has not begun the call. */
static void not_too_early(MPI_Comm comm)
{
    struct buffers b;
    MPI_Request request;
    int flag = 0, early = 0, k;

    fill(&b, 6);
    if (rank != 3)
        begin(0, &b, comm, &request);
    for (k = 0; k < 300 && rank != 3; k++) {
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        early |= flag;
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        early |= flag;
    }
    EXPECT(!early);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 3)
        begin(0, &b, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(wrong(&b, 0, 6) == 0);
}

/* Its type and its communicator are freed while the call is under way. */
static void freed(MPI_Comm comm)
{
    static int mine[2 * COUNT], got[2 * N * COUNT];
    MPI_Datatype gaps;
    MPI_Comm copy;
    MPI_Request request;
    int k, bad = 0;

    MPI_Comm_dup(comm, &copy);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    for (k = 0; k < 2 * N * COUNT; k++)
        got[k] = -5;
    for (k = 0; k < 2 * COUNT; k++)
        mine[k] = value(rank, k / 2, 1);
    MPI_Iallgather(mine, COUNT, gaps, got, COUNT, gaps, copy, &request);
    MPI_Type_free(&gaps);
    MPI_Comm_free(&copy);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (k = 0; k < 2 * N * COUNT; k++)
        bad += got[k] != (k % 2 ? -5 : value(k / 2 / COUNT, k / 2 % COUNT, 1));
    EXPECT(bad == 0);
}

/* Odd ranks wait in functions that the library does not have; even ranks come there only after the call. */
static void waits_elsewhere(MPI_Comm comm)
{
    static struct buffers b;
    MPI_Comm other, half;
    MPI_Win window;
    MPI_Message message;
    MPI_Request request;
    int where, token = rank, got = -1;

    MPI_Comm_dup(comm, &other);
    MPI_Win_create(&token, sizeof token, sizeof token, MPI_INFO_NULL, other, &window);
    for (where = 0; where < 4; where++) {
        fill(&b, where);
        begin(where, &b, comm, &request);
        if (rank % 2 == 0) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            EXPECT(wrong(&b, where, where) == 0);
        }
        switch (where) {
        case 0: MPI_Win_fence(0, window); break;
        case 1:
            MPI_Comm_split(other, rank / 2, 0, &half);
            MPI_Comm_free(&half);
            break;
        case 2:
            if (rank % 2 == 0) {
                MPI_Send(&token, 1, MPI_INT, rank + 1, 12, comm);
            } else {
                MPI_Mprobe(rank - 1, 12, comm, &message, MPI_STATUS_IGNORE);
                MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
                EXPECT(got == rank - 1);
            }
            break;
        case 3:
            MPI_Sendrecv_replace(&token, 1, MPI_INT, rank ^ 1, 13, rank ^ 1, 13, comm, MPI_STATUS_IGNORE);
            EXPECT(token == (rank ^ 1));
            token = rank;
            break;
        }
        if (rank % 2) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            EXPECT(wrong(&b, where, where) == 0);
        }
    }
    MPI_Win_free(&window);
    MPI_Comm_free(&other);
}

/* Calls on two communicators, begun and ended in another order on every rank. */
static void crossed(MPI_Comm comm)
{
    static struct buffers b[2];
    MPI_Comm comms[2];
    MPI_Request requests[2];
    int k, kind;

    MPI_Comm_dup(comm, &comms[0]);
    MPI_Comm_dup(comm, &comms[1]);
    for (kind = 0; kind < KINDS; kind++) {
        for (k = 0; k < 2; k++) {
            int at = (k + rank) % 2;

            fill(&b[at], at);
            begin((kind + at) % KINDS, &b[at], comms[at], &requests[at]);
        }
        for (k = 0; k < 2; k++)
            MPI_Wait(&requests[(k + rank / 2) % 2], MPI_STATUS_IGNORE);
        EXPECT(wrong(&b[0], kind, 0) == 0 && wrong(&b[1], (kind + 1) % KINDS, 1) == 0);
    }
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
}

static void add(void *in, void *both, int *number, MPI_Datatype *type)
{
    int k;

    (void)type;
    for (k = 0; k < *number; k++)
        ((int *)both)[k] += ((int *)in)[k];
}

/* An operation of the program's own, freed while calls are under way. */
static void own_operation(MPI_Comm comm)
{
    static struct buffers b[2];
    MPI_Request requests[2];
    MPI_Op op;
    int k, j, bad = 0;

    MPI_Op_create(add, 1, &op);
    for (j = 0; j < 2; j++) {
        fill(&b[j], j);
        MPI_Iallreduce(b[j].send, b[j].recv, COUNT, MPI_INT, op, comm, &requests[j]);
    }
    MPI_Op_free(&op);
    EXPECT(op == MPI_OP_NULL);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (j = 0; j < 2; j++)
        for (k = 0; k < COUNT; k++)
            bad += b[j].recv[k] != total(k, j);
    EXPECT(bad == 0);
}

/* Calls with a count for each rank: nonblocking, or persistent and started twice. */
static void uneven(MPI_Comm comm, int again)
{
    static const int counts[N] = {5, 0, 3, 4}, places[N] = {7, 0, 0, 3};
#if MPI_VERSION >= 4
    MPI_Count large_counts[N] = {5, 0, 3, 4};
    MPI_Aint large_places[N] = {7, 0, 0, 3};
#endif
    static int mine[16], got[16], sent[16], sums[16];
    MPI_Request requests[2];
    int k, r, round, bad = 0;

#if PERSISTENT
    if (again) {
        MPI_Allgatherv_init(mine, counts[rank], MPI_INT, got, counts, places, MPI_INT, comm, MPI_INFO_NULL, requests);
        MPI_Reduce_scatter_init(sent, sums, counts, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, requests + 1);
    }
#endif
    for (round = 0; round < 1 + again; round++) {
        for (k = 0; k < 16; k++) {
            mine[k] = value(rank, k, round);
            sent[k] = value(rank, k, round + 5);
            got[k] = sums[k] = -1;
        }
        if (again) {
            MPI_Startall(2, requests);
        } else {
#if MPI_VERSION >= 4
            if (rank == 1)
                MPI_Iallgatherv_c(mine, counts[rank], MPI_INT, got, large_counts, large_places, MPI_INT, comm, requests);
            else
#endif
                MPI_Iallgatherv(mine, counts[rank], MPI_INT, got, counts, places, MPI_INT, comm, requests);
            MPI_Ireduce_scatter(sent, sums, counts, MPI_INT, MPI_SUM, comm, requests + 1);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (r = 0; r < N; r++)
            for (k = 0; k < counts[r]; k++)
                bad += got[places[r] + k] != value(r, k, round);
        for (k = 0; k < counts[rank]; k++)
            bad += sums[k] != total(k + (rank > 0) * 5 + (rank > 2) * 3, round + 5);
        bad += got[12] != -1 || sums[5] != -1;
    }
    EXPECT(bad == 0);
    for (k = 0; k < 2 && again; k++)
        MPI_Request_free(&requests[k]);
}

#if PERSISTENT
static void prepare(int kind, struct buffers *b, MPI_Comm comm, MPI_Request *request)
{
    MPI_Info none = MPI_INFO_NULL;
    int error = MPI_ERR_OTHER;

    switch (kind) {
    case 0: error = MPI_Allreduce_init(b->send, b->recv, COUNT, MPI_INT, MPI_SUM, comm, none, request); break;
    case 1:
        error = MPI_Reduce_scatter_block_init(b->send, b->recv, COUNT, MPI_INT, MPI_SUM, comm, none, request);
        break;
    case 2: error = MPI_Allgather_init(b->send, COUNT, MPI_INT, b->recv, COUNT, MPI_INT, comm, none, request); break;
    case 3: error = MPI_Alltoall_init(b->send, COUNT, MPI_INT, b->recv, COUNT, MPI_INT, comm, none, request); break;
    case 4: error = MPI_Bcast_init(b->recv, COUNT, MPI_INT, 0, comm, none, request); break;
    case 5: error = MPI_Reduce_init(b->send, b->recv, COUNT, MPI_INT, MPI_SUM, 0, comm, none, request); break;
    case 6: error = MPI_Gather_init(b->send, COUNT, MPI_INT, b->recv, COUNT, MPI_INT, 0, comm, none, request); break;
    case 7: error = MPI_Scatter_init(b->send, COUNT, MPI_INT, b->recv, COUNT, MPI_INT, 0, comm, none, request); break;
    }
    EXPECT(error == MPI_SUCCESS);
}

/* Requests of all kinds, started again and again, in another order on every rank. */
static void persistent(MPI_Comm comm)
{
    static struct buffers b[KINDS];
    MPI_Request requests[KINDS];
    int kind, round, bad, k;

    for (kind = 0; kind < KINDS; kind++)
        prepare(kind, &b[kind], comm, &requests[kind]);
    for (round = 0; round < 6; round++) {
        for (kind = 0; kind < KINDS; kind++)
            fill(&b[kind], kind + round);
        if (round % 2)
            MPI_Startall(KINDS, requests);
        else
            for (k = 0; k < KINDS; k++)
                MPI_Start(&requests[(k + rank) % KINDS]);
        if (round % 3 == 0)
            for (k = 0; k < KINDS; k++)
                MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
        else
            MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
        for (kind = bad = 0; kind < KINDS; kind++)
            bad += wrong(&b[kind], kind, kind + round) + (requests[kind] == MPI_REQUEST_NULL);
        EXPECT(bad == 0);
    }
    for (kind = 0; kind < KINDS; kind++) {
        MPI_Request_free(&requests[kind]);
        EXPECT(requests[kind] == MPI_REQUEST_NULL);
    }
}

/* An operation that a nonblocking and a persistent call need is freed by the program, and by the one that ends last. */
static void shared_operation(MPI_Comm comm)
{
    static struct buffers b[2];
    MPI_Request again, once;
    MPI_Op op;
    int k, j, bad = 0;

    MPI_Op_create(add, 1, &op);
    fill(&b[0], 0);
    fill(&b[1], 1);
    MPI_Allreduce_init(b[0].send, b[0].recv, COUNT, MPI_INT, op, comm, MPI_INFO_NULL, &again);
    MPI_Iallreduce(b[1].send, b[1].recv, COUNT, MPI_INT, op, comm, &once);
    MPI_Op_free(&op);
    MPI_Wait(&once, MPI_STATUS_IGNORE);
    for (j = 0; j < 2; j++) {
        MPI_Start(&again);
        MPI_Wait(&again, MPI_STATUS_IGNORE);
    }
    for (j = 0; j < 2; j++)
        for (k = 0; k < COUNT; k++)
            bad += b[j].recv[k] != total(k, j);
    EXPECT(bad == 0);
    MPI_Request_free(&again);
}

/* The library's thread, if there is one, blocks all signals: they are for the program's own threads. */
static void own_signals(void)
{
    char path[300], line[200];
    DIR *threads = opendir("/proc/self/task");
    struct dirent *one;
    unsigned long long blocked = 0;
    int ours;

    while ((one = readdir(threads)) != NULL) {
        FILE *status;

        snprintf(path, sizeof path, "/proc/self/task/%s/status", one->d_name);
        if (one->d_name[0] == '.' || (status = fopen(path, "r")) == NULL)
            continue;
        for (ours = 0; fgets(line, sizeof line, status) != NULL;) {
            ours |= strcmp(line, "Name:\tcollc\n") == 0;
            if (ours && sscanf(line, "SigBlk: %llx", &blocked) == 1)
                EXPECT(blocked >> (SIGUSR1 - 1) & blocked >> (SIGALRM - 1) & 1);
        }
        fclose(status);
    }
    closedir(threads);
}

/* Data with gaps, whose type is freed before the request is. */
static void persistent_gaps(MPI_Comm comm)
{
    static int mine[2 * COUNT], got[2 * N * COUNT];
    MPI_Datatype gaps;
    MPI_Request request;
    int k, round, bad = 0;

    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    MPI_Allgather_init(mine, COUNT, gaps, got, COUNT, gaps, comm, MPI_INFO_NULL, &request);
    MPI_Type_free(&gaps);
    for (round = 0; round < 3; round++) {
        for (k = 0; k < 2 * N * COUNT; k++)
            got[k] = -5;
        for (k = 0; k < 2 * COUNT; k++)
            mine[k] = value(rank, k / 2, round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (k = 0; k < 2 * N * COUNT; k++)
            bad += got[k] != (k % 2 ? -5 : value(k / 2 / COUNT, k / 2 % COUNT, round));
    }
    MPI_Request_free(&request);
    EXPECT(bad == 0);
}
#endif

static void *in_thread(void *where)
{
    MPI_Comm comm = *(MPI_Comm *)where;
    struct buffers b;
    MPI_Request request;
    int k;

    for (k = 0; k < 40; k++) {
        fill(&b, k);
        begin(k % KINDS, &b, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(wrong(&b, k % KINDS, k) == 0);
    }
    return NULL;
}

static void threads(void)
{
    MPI_Comm comms[2];
    pthread_t other;

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    pthread_create(&other, NULL, in_thread, &comms[1]);
    in_thread(&comms[0]);
    pthread_join(other, NULL);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
}

/* What a wait returns for a call that fails in a library with a fault. */
static void fails(MPI_Comm comm)
{
    struct buffers b;
    MPI_Request request;
    int error;

    fill(&b, 1);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    begin(0, &b, comm, &request);
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("rank %d: %s\n", rank, error == MPI_SUCCESS ? "success" : "an error");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int provided, k, sums[2], mine[2];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1) {
        fails(MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
    }
    begins_do_not_wait(MPI_COMM_WORLD);
    not_too_early(MPI_COMM_WORLD);
    for (k = 0; k < ROUNDS; k++)
        many(MPI_COMM_WORLD, k);
    for (k = 0; k < KINDS; k++)
        message_after(MPI_COMM_WORLD, k, k % 2);
    freed(MPI_COMM_WORLD);
    waits_elsewhere(MPI_COMM_WORLD);
    crossed(MPI_COMM_WORLD);
    own_operation(MPI_COMM_WORLD);
    uneven(MPI_COMM_WORLD, 0);
#if PERSISTENT
    uneven(MPI_COMM_WORLD, 1);
    persistent(MPI_COMM_WORLD);
    if (getenv("KEEP_HANDLES") == NULL) { /* Open MPI 5.0 uses types and operations of persistent calls that were freed */
        persistent_gaps(MPI_COMM_WORLD);
        shared_operation(MPI_COMM_WORLD);
    }
    own_signals();
#endif
    if (provided == MPI_THREAD_MULTIPLE)
        threads();
    mine[0] = checks, mine[1] = failures;
    MPI_Reduce(mine, sums, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("checks %d failures %d\n", sums[0], sums[1]);
    MPI_Finalize();
    return 0;
}
