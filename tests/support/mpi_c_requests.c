/* Requests of a generated library: nonblocking and persistent calls, several at once, from threads, and their end.
 *
 * Runs on four ranks. The library is `pod`: `pod_sums` (allreduce), `pod_pieces` (reduce-scatter), `pod_all`
 * (allgather), `pod_swap` (alltoall), `pod_news` (broadcast from 1), `pod_total` (reduce to 2), `pod_heap` (gather to
 * 0), `pod_deal` (scatter from 3), and `pod_pair` (allreduce of two ranks).
 */
#define _POSIX_C_SOURCE 200112L

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "pod.h"

enum { N = 4, COUNT = 37, ROUNDS = 3, KINDS = 8 };

static int rank, failures, checks;

static void expect(int ok, const char *what, int line)
{
    checks++;
    if (ok)
        return;
    failures++;
    printf("requests rank=%d line=%d failed: %s\n", rank, line, what);
    fflush(stdout);
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

/* ---- what the generated code asks of the MPI, counted; and made to fail */

static int duplicates, freed, fail_at, receives;

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    __sync_fetch_and_add(&duplicates, 1);
    return PMPI_Comm_dup(comm, copy);
}

int MPI_Comm_free(MPI_Comm *comm)
{
    __sync_fetch_and_add(&freed, 1);
    return PMPI_Comm_free(comm);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    if (fail_at > 0 && ++receives >= fail_at)
        return MPI_ERR_OTHER;
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

/* ---- calls with known results */

typedef int begin_function(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                           pod_request *);
typedef int init_function(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                          pod_request *);

static begin_function *const begins[KINDS] = {
    pod_sums_begin, pod_pieces_begin, pod_all_begin,  pod_swap_begin,
    pod_news_begin, pod_total_begin,  pod_heap_begin, pod_deal_begin,
};
static init_function *const inits[KINDS] = {
    pod_sums_init, pod_pieces_init, pod_all_init,  pod_swap_init,
    pod_news_init, pod_total_init,  pod_heap_init, pod_deal_init,
};

struct buffers {
    int send[N * COUNT], recv[N * COUNT];
};

static int value(int from, int k, int salt)
{
    return 1000 * from + k + 7 * salt;
}

static void fill(struct buffers *b, int salt)
{
    int k;

    for (k = 0; k < N * COUNT; k++)
        b->send[k] = value(rank, k, salt), b->recv[k] = -1;
    if (rank == 1)
        memcpy(b->recv, b->send, sizeof b->recv); /* what the broadcast sends */
}

static int total(int k, int salt)
{
    return value(0, k, salt) + value(1, k, salt) + value(2, k, salt) + value(3, k, salt);
}

/* How many elements of a result are wrong. */
static int wrong(const struct buffers *b, int kind, int salt)
{
    int bad = 0, k, r;

    for (k = 0; k < COUNT; k++) {
        switch (kind) {
        case 0: bad += b->recv[k] != total(k, salt); break;
        case 1: bad += b->recv[k] != total(rank * COUNT + k, salt); break;
        case 4: bad += b->recv[k] != value(1, k, salt); break;
        case 5: bad += rank == 2 && b->recv[k] != total(k, salt); break;
        case 7: bad += b->recv[k] != value(3, rank * COUNT + k, salt); break;
        default:
            for (r = 0; r < N; r++) {
                int at = kind == 3 ? rank * COUNT + k : k;

                if (kind != 6 || rank == 0)
                    bad += b->recv[r * COUNT + k] != value(r, at, salt);
            }
        }
    }
    return bad;
}

/* ---- nonblocking */

/* Many at once, waited for in another order on every rank, with blocking calls and others' tests between. */
static void many_at_once(MPI_Comm comm)
{
    enum { MANY = 3 * KINDS };
    static struct buffers b[MANY];
    pod_request requests[MANY];
    int bad = 0, k, flag, mine = rank, sum = 0;

    for (k = 0; k < MANY; k++) {
        fill(&b[k], k);
        EXPECT(begins[k % KINDS](k % KINDS == 4 ? MPI_IN_PLACE : b[k].send, b[k].recv, COUNT, MPI_INT,
                                 MPI_SUM, comm, &requests[k]) == MPI_SUCCESS);
        if (k % 10 == 3)
            EXPECT(pod_test(&requests[rank % (k + 1)], &flag) == MPI_SUCCESS);
        if (k == MANY / 2)
            EXPECT(pod_sums(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == 6);
    }
    for (k = 0; k < MANY; k++) {
        int at = (k * (2 * rank + 5) + rank) % MANY; /* 5, 7, 11 and 13 or so: not all are permutations */

        EXPECT(pod_wait(&requests[at]) == MPI_SUCCESS && requests[at] == NULL);
        bad += wrong(&b[at], at % KINDS, at);
    }
    EXPECT(pod_waitall(MANY, requests) == MPI_SUCCESS);
    for (k = 0; k < MANY; k++)
        bad += wrong(&b[k], k % KINDS, k);
    EXPECT(bad == 0);
}

/* Ranks wait for calls on two communicators in opposite order. */
static void two_communicators(MPI_Comm one, MPI_Comm other)
{
    static struct buffers a, b;
    pod_request first, second;
    int flag = 0;

    fill(&a, 1), fill(&b, 2);
    pod_sums_begin(a.send, a.recv, COUNT, MPI_INT, MPI_SUM, one, &first);
    pod_sums_begin(b.send, b.recv, COUNT, MPI_INT, MPI_SUM, other, &second);
    if (rank % 2) {
        EXPECT(pod_wait(&first) == MPI_SUCCESS);
        while (!flag)
            EXPECT(pod_test(&second, &flag) == MPI_SUCCESS), sched_yield();
    } else {
        EXPECT(pod_wait(&second) == MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_SELF);
        EXPECT(pod_wait(&first) == MPI_SUCCESS);
    }
    EXPECT(wrong(&a, 0, 1) == 0 && wrong(&b, 0, 2) == 0);
}

/* The same library on communicators of two ranks, while calls on one of four are under way. */
static void another_size(MPI_Comm comm)
{
    static struct buffers b;
    pod_request four, two, again;
    MPI_Comm pair;
    int mine = rank, sum = 0, once_more = 0;

    fill(&b, 5);
    MPI_Comm_split(comm, rank / 2, rank, &pair);
    pod_swap_begin(b.send, b.recv, COUNT, MPI_INT, MPI_OP_NULL, comm, &four);
    EXPECT(pod_pair_begin(&mine, &sum, 1, MPI_INT, MPI_SUM, pair, &two) == MPI_SUCCESS);
    EXPECT(pod_pair_init(&mine, &once_more, 1, MPI_INT, MPI_SUM, pair, MPI_INFO_NULL, &again) ==
           MPI_SUCCESS);
    EXPECT(pod_start(&again) == MPI_SUCCESS && pod_wait(&two) == MPI_SUCCESS);
    EXPECT(pod_wait(&four) == MPI_SUCCESS && pod_wait(&again) == MPI_SUCCESS);
    EXPECT(sum == rank / 2 * 4 + 1 && once_more == sum && wrong(&b, 3, 5) == 0);
    EXPECT(pod_free(&again) == MPI_SUCCESS);
    PMPI_Comm_free(&pair);
}

/* ---- persistent */

static void again_and_again(MPI_Comm comm)
{
    static struct buffers b[KINDS];
    pod_request requests[KINDS], none = NULL, passing;
    int k, round, at, flag, bad = 0;

    for (k = 0; k < KINDS; k++)
        EXPECT(inits[k](k == 4 ? MPI_IN_PLACE : b[k].send, b[k].recv, COUNT, MPI_INT, MPI_SUM, comm,
                        MPI_INFO_NULL, &requests[k]) == MPI_SUCCESS);
    EXPECT(pod_test(&requests[0], &flag) == MPI_SUCCESS && flag);
    EXPECT(pod_wait(&requests[0]) == MPI_SUCCESS && requests[0] != NULL);
    for (round = 0; round < ROUNDS; round++) {
        for (k = 0; k < KINDS; k++) {
            at = (k * (2 * rank + 1) + round) % KINDS; /* another order on every rank */
            fill(&b[at], round);
            EXPECT(pod_start(&requests[at]) == MPI_SUCCESS);
            EXPECT(pod_start(&requests[at]) == MPI_ERR_REQUEST);
            EXPECT(pod_free(&requests[at]) == MPI_ERR_REQUEST);
        }
        EXPECT(pod_waitall(KINDS, requests) == MPI_SUCCESS);
        for (k = 0; k < KINDS; k++)
            bad += wrong(&b[k], k, round);
    }
    EXPECT(bad == 0);
    for (k = 0; k < KINDS; k++)
        EXPECT(pod_free(&requests[k]) == MPI_SUCCESS && requests[k] == NULL);
    EXPECT(pod_start(&none) == MPI_ERR_REQUEST && pod_free(&none) == MPI_ERR_REQUEST);
    EXPECT(pod_test(&none, &flag) == MPI_SUCCESS && flag && pod_wait(&none) == MPI_SUCCESS);
    fill(&b[0], 9);
    pod_sums_begin(b[0].send, b[0].recv, COUNT, MPI_INT, MPI_SUM, comm, &passing);
    EXPECT(pod_start(&passing) == MPI_ERR_REQUEST && pod_free(&passing) == MPI_ERR_REQUEST);
    EXPECT(pod_wait(&passing) == MPI_SUCCESS && wrong(&b[0], 0, 9) == 0);
}

/* In place, where buffers are copied aside or built aside: each time anew. */
static void in_place_again(MPI_Comm comm)
{
    static struct buffers sum, heap, deal;
    pod_request requests[3];
    int round, k, bad = 0;

    pod_pieces_init(MPI_IN_PLACE, sum.recv, COUNT, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
    pod_heap_init(rank == 0 ? MPI_IN_PLACE : heap.send, heap.recv, COUNT, MPI_INT, MPI_OP_NULL, comm,
                  MPI_INFO_NULL, &requests[1]);
    pod_deal_init(deal.send, rank == 3 ? MPI_IN_PLACE : deal.recv, COUNT, MPI_INT, MPI_OP_NULL, comm,
                  MPI_INFO_NULL, &requests[2]);
    for (round = 0; round < ROUNDS; round++) {
        fill(&sum, round), fill(&heap, round), fill(&deal, round);
        memcpy(sum.recv, sum.send, sizeof sum.recv);
        memcpy(heap.recv, heap.send, COUNT * sizeof(int));
        for (k = 0; k < 3; k++)
            EXPECT(pod_start(&requests[(k + rank) % 3]) == MPI_SUCCESS);
        EXPECT(pod_waitall(3, requests) == MPI_SUCCESS);
        bad += wrong(&sum, 1, round) + (rank == 0 ? wrong(&heap, 6, round) : 0);
        bad += rank != 3 ? wrong(&deal, 7, round) : 0;
        for (k = COUNT; k < N * COUNT; k++)
            bad += sum.recv[k] != value(rank, k, round);
    }
    EXPECT(bad == 0);
    for (k = 0; k < 3; k++)
        EXPECT(pod_free(&requests[k]) == MPI_SUCCESS);
}

/* Calls of nothing have requests all the same. */
static void nothing(MPI_Comm comm)
{
    pod_request request;
    int flag = 0;

    EXPECT(pod_sums_begin(NULL, NULL, 0, MPI_INT, MPI_SUM, comm, &request) == MPI_SUCCESS);
    EXPECT(pod_test(&request, &flag) == MPI_SUCCESS && flag);
    EXPECT(pod_all_init(NULL, NULL, 0, MPI_INT, MPI_OP_NULL, comm, MPI_INFO_NULL, &request) ==
           MPI_SUCCESS);
    EXPECT(pod_start(&request) == MPI_SUCCESS && pod_start(&request) == MPI_ERR_REQUEST);
    EXPECT(pod_wait(&request) == MPI_SUCCESS && pod_start(&request) == MPI_SUCCESS);
    EXPECT(pod_wait(&request) == MPI_SUCCESS && pod_free(&request) == MPI_SUCCESS);
}

/* ---- arguments */

static void keep(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    memcpy(inout, in, (size_t)*count * sizeof(int));
}

static int handled;

static void handle(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
    handled++;
}

/* Nothing of it reaches the communicator's error handler. */
static void refused(MPI_Comm comm)
{
    int a[N] = {0}, b[N] = {0};
    pod_request request = NULL;
    MPI_Op first;
    MPI_Errhandler handler;

    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Op_create(keep, 0, &first);
    EXPECT(pod_sums_begin(a, b, 1, MPI_INT, first, comm, &request) == MPI_ERR_OP && request == NULL);
    EXPECT(pod_sums_init(a, b, 1, MPI_INT, first, comm, MPI_INFO_NULL, &request) == MPI_ERR_OP);
    MPI_Op_free(&first);
    EXPECT(pod_sums_begin(a, b, -1, MPI_INT, MPI_SUM, comm, &request) == MPI_ERR_COUNT);
    EXPECT(pod_sums_begin(a, a, 1, MPI_INT, MPI_SUM, comm, &request) == MPI_ERR_BUFFER);
    EXPECT(pod_sums_begin(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request) == MPI_ERR_COMM);
    EXPECT(pod_pair(a, b, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_COMM);
    EXPECT(pod_sums_begin(a, b, 1, MPI_INT, MPI_SUM, comm, NULL) == MPI_ERR_ARG);
    EXPECT(pod_test(&request, NULL) == MPI_ERR_ARG && pod_wait(NULL) == MPI_ERR_ARG);
    EXPECT(pod_attach(MPI_COMM_NULL) == MPI_ERR_COMM);
    EXPECT(pod_sums_c(a, b, (MPI_Count)1 << 61, MPI_INT, MPI_SUM, comm) == MPI_ERR_NO_MEM);
    EXPECT(handled == 0);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
}

/* ---- types */

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int *a = in, *b = inout, k;

    (void)type;
    for (k = 0; k < *count; k++) /* elements go downwards, two ints apart; their data lie one before */
        b[-2 * k - 1] = (b[-2 * k - 1] + a[-2 * k - 1]) % 1009;
}

/* A type with a gap, a negative lower bound and a negative extent; and absolute addresses. */
static void odd_types(MPI_Comm comm)
{
    enum { ODD = 13 };
    static int mine[2 * ODD], got[2 * ODD], value_of[3];
    MPI_Datatype before, odd, absolute;
    MPI_Aint below = -(MPI_Aint)sizeof(int), address;
    MPI_Op modular;
    pod_request request;
    int one = 1, three = 3, k, bad = 0;

    MPI_Type_create_hindexed(1, &one, &below, MPI_INT, &before);
    MPI_Type_create_resized(before, below, -2 * (MPI_Aint)sizeof(int), &odd);
    MPI_Type_commit(&odd);
    MPI_Op_create(add, 1, &modular);
    for (k = 0; k < 2 * ODD; k++)
        mine[k] = (k + 300 * rank) % 1009, got[k] = -5;
    pod_sums_begin(&mine[2 * ODD - 1], &got[2 * ODD - 1], ODD, odd, modular, comm, &request);
    EXPECT(pod_wait(&request) == MPI_SUCCESS);
    for (k = 0; k < 2 * ODD; k++)
        bad += got[k] != (k % 2 ? -5 : (4 * k + 1800) % 1009);
    EXPECT(bad == 0);
    MPI_Op_free(&modular);
    MPI_Type_free(&odd);
    MPI_Type_free(&before);
    MPI_Get_address(value_of, &address);
    MPI_Type_create_hindexed(1, &three, &address, MPI_INT, &absolute);
    MPI_Type_commit(&absolute);
    for (k = 0; k < 3; k++)
        value_of[k] = rank == 1 ? 50 + k : 0;
    EXPECT(pod_news_begin(MPI_IN_PLACE, MPI_BOTTOM, 1, absolute, MPI_OP_NULL, comm, &request) ==
           MPI_SUCCESS);
    EXPECT(pod_wait(&request) == MPI_SUCCESS && value_of[0] == 50 && value_of[2] == 52);
    MPI_Type_free(&absolute);
}

/* ---- the end of communicators */

static void freed_before_done(MPI_Comm comm)
{
    static struct buffers a, b, c;
    pod_request one, other, persistent;
    MPI_Comm copy;
    int before;

    PMPI_Comm_dup(comm, &copy);
    before = duplicates - freed;
    fill(&a, 1), fill(&b, 2), fill(&c, 3);
    pod_all_init(c.send, c.recv, COUNT, MPI_INT, MPI_OP_NULL, copy, MPI_INFO_NULL, &persistent);
    pod_sums_begin(a.send, a.recv, COUNT, MPI_INT, MPI_SUM, copy, &one);
    pod_swap_begin(b.send, b.recv, COUNT, MPI_INT, MPI_OP_NULL, copy, &other);
    PMPI_Comm_free(&copy);
    EXPECT(duplicates - freed > before);
    EXPECT(pod_wait(&other) == MPI_SUCCESS && pod_wait(&one) == MPI_SUCCESS);
    EXPECT(pod_start(&persistent) == MPI_SUCCESS && pod_wait(&persistent) == MPI_SUCCESS);
    EXPECT(wrong(&a, 0, 1) == 0 && wrong(&b, 3, 2) == 0 && wrong(&c, 2, 3) == 0);
    EXPECT(duplicates - freed > before);
    EXPECT(pod_free(&persistent) == MPI_SUCCESS);
    EXPECT(duplicates - freed == before);
}

/* An error in one call ends all that are under way on the communicator, and no others. */
static void failing(MPI_Comm comm)
{
    static struct buffers a, b, c, d;
    MPI_Comm copy;
    pod_request persistent, first, second, sound;
    int kept = duplicates - freed, k;

    PMPI_Comm_dup(comm, &copy);
    fill(&a, 1), fill(&b, 2), fill(&d, 4);
    EXPECT(pod_attach(copy) == MPI_SUCCESS);
    pod_sums_init(c.send, c.recv, COUNT, MPI_INT, MPI_SUM, copy, MPI_INFO_NULL, &persistent);
    pod_sums_begin(d.send, d.recv, COUNT, MPI_INT, MPI_SUM, comm, &sound);
    EXPECT(pod_wait(&sound) == MPI_SUCCESS);
    for (k = 0; k < 8; k++) { /* afterwards calls have their memory, and set out at once */
        pod_sums_begin(a.send, a.recv, COUNT, MPI_INT, MPI_SUM, copy, &first);
        EXPECT(pod_wait(&first) == MPI_SUCCESS);
    }
    EXPECT(pod_sums_begin(a.send, a.recv, COUNT, MPI_INT, MPI_SUM, copy, &first) == MPI_SUCCESS);
    receives = 0, fail_at = 1;
    EXPECT(pod_sums_begin(b.send, b.recv, COUNT, MPI_INT, MPI_SUM, copy, &second) == MPI_ERR_OTHER &&
           second == NULL);
    EXPECT(pod_wait(&first) == MPI_ERR_OTHER || wrong(&a, 0, 1) == 0); /* unless it was that fast */
    EXPECT(first == NULL);
    fail_at = 0;
    EXPECT(pod_start(&persistent) == MPI_ERR_OTHER && pod_free(&persistent) == MPI_SUCCESS);
    EXPECT(pod_sums(a.send, a.recv, COUNT, MPI_INT, MPI_SUM, copy) == MPI_ERR_OTHER);
    EXPECT(pod_sums(d.send, d.recv, COUNT, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    EXPECT(wrong(&d, 0, 4) == 0);
    PMPI_Comm_free(&copy);
    freed += duplicates - freed - kept; /* spoiled ones are kept for ever, with the messages left in them */
}

/* ---- threads */

struct thread {
    MPI_Comm comm;
    int number, bad;
};

static void *calls_of_a_thread(void *argument)
{
    struct thread *t = argument;
    struct buffers *b = malloc(sizeof *b);
    int round;

    for (round = 0; round < 10; round++) {
        pod_request request = NULL;

        fill(b, round + t->number);
        if (round % 2) {
            t->bad += pod_sums_begin(b->send, b->recv, COUNT, MPI_INT, MPI_SUM, t->comm, &request) != 0;
            t->bad += pod_wait(&request) != MPI_SUCCESS;
        } else {
            t->bad += pod_sums(b->send, b->recv, COUNT, MPI_INT, MPI_SUM, t->comm) != MPI_SUCCESS;
        }
        t->bad += wrong(b, 0, round + t->number);
    }
    free(b);
    return NULL;
}

/* First calls too are made at the same time. */
static void threads(MPI_Comm comm)
{
    enum { THREADS = 3 };
    pthread_t running[THREADS];
    struct thread of[THREADS];
    int k;

    for (k = 0; k < THREADS; k++) {
        PMPI_Comm_dup(comm, &of[k].comm);
        of[k].number = 100 * k, of[k].bad = 0;
    }
    for (k = 0; k < THREADS; k++)
        pthread_create(&running[k], NULL, calls_of_a_thread, &of[k]);
    for (k = 0; k < THREADS; k++) {
        pthread_join(running[k], NULL);
        EXPECT(of[k].bad == 0);
        PMPI_Comm_free(&of[k].comm);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm, other;
    pod_request late;
    int given, sum, mine = 1, result;

    alarm(240);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    PMPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_rank(comm, &rank);
    if (given == MPI_THREAD_MULTIPLE)
        threads(comm);
    EXPECT(given == MPI_THREAD_MULTIPLE || argc > 1);
    many_at_once(comm);
    two_communicators(comm, other);
    another_size(comm);
    again_and_again(comm);
    in_place_again(comm);
    nothing(comm);
    refused(comm);
    odd_types(comm);
    freed_before_done(comm);
    if (argc == 1) /* lets go of memory on purpose */
        failing(comm);
    MPI_Reduce(&failures, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    pod_sums_init(&mine, &result, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &late);
    MPI_Finalize(); /* frees the duplicates of `other` and `comm`, though there is a request */
    if (duplicates != freed)
        printf("requests rank=%d failed: %d duplicates were not freed\n", rank, duplicates - freed);
    if (pod_free(&late) != MPI_SUCCESS)
        printf("requests rank=%d failed: a request cannot be freed after the end\n", rank);
    if (rank == 0)
        printf("requests-end failures=%d\n", sum);
    return 0;
}
