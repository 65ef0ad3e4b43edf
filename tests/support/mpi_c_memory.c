/* Calls for which one rank has no memory end alike on all ranks; calls after them are right, and nothing leaks.
 *
 * `memory FORM STEP`, on four ranks, tries a sequence of calls again and again, on a communicator of its own each
 * time: a rank gets no memory at its first, second, .. allocation in generated code, until it makes no more (in steps
 * of STEP; 0: at none, and nothing may be wrong). FORM is `blocking`, `begun`, `persistent`, `mixed` or `threads`.
 * Each allocation fails alone, and together with all after it, until the calls are over.
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

enum { N = 4, KINDS = 5, LARGE = 300000, CALLS = 90, THREADS = 3 };

static int rank, failures;

static void expect(int ok, const char *what, int line)
{
    if (ok)
        return;
    failures++;
    printf("memory rank=%d line=%d failed: %s\n", rank, line, what);
    fflush(stdout);
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

/* ---- allocations of generated code (memory_pod.c names these functions) */

void *scarce_malloc(size_t bytes);
void *scarce_calloc(size_t number, size_t bytes);
void scarce_free(void *memory);

static int allocations, live, fail_from, fail_to, failed;

static int fails(void)
{
    int now = __sync_add_and_fetch(&allocations, 1), is = fail_from > 0 && now >= fail_from && now <= fail_to;

    if (is)
        __sync_fetch_and_add(&failed, 1);
    else
        __sync_fetch_and_add(&live, 1);
    return is;
}

void *scarce_malloc(size_t bytes)
{
    return fails() ? NULL : malloc(bytes);
}

void *scarce_calloc(size_t number, size_t bytes)
{
    return fails() ? NULL : calloc(number, bytes);
}

void scarce_free(void *memory)
{
    if (memory != NULL)
        __sync_fetch_and_sub(&live, 1);
    free(memory);
}

/* ---- a duplicate that one rank does not get */

static int no_duplicate;

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    int error = PMPI_Comm_dup(comm, copy);

    return no_duplicate ? MPI_ERR_NO_MEM : error;
}

/* ---- what agreement costs */

static int votes;

int MPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    __sync_fetch_and_add(&votes, 1);
    return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}

/* ---- calls with known results */

typedef int call_function(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
typedef int begin_function(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, pod_request *);
typedef int init_function(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                          pod_request *);

/* A sum; one by several algorithms; pieces of a sum; an exchange through scratch; a gathering at rank 0. */
static call_function *const calls[KINDS] = {pod_sums_c, pod_chosen_c, pod_pieces_c, pod_swap_c, pod_heap_c};
static begin_function *const begins[KINDS] = {pod_sums_begin, pod_chosen_begin, pod_pieces_begin,
                                              pod_swap_begin, pod_heap_begin};
static init_function *const inits[KINDS] = {pod_sums_init, pod_chosen_init, pod_pieces_init, pod_swap_init,
                                            pod_heap_init};

struct data {
    int kind, count, in_place, apart; /* apart: elements are two ints of which the second is a gap */
    int *send, *recv;
    MPI_Datatype type;
    pod_request request;
    int error;
};

static int value(int of, int k)
{
    return 7 * of + k % 1000;
}

static int blocks_of(const struct data *d, int receiving)
{
    if (d->kind < 2 || (d->kind == 2 && receiving) || (d->kind == 4 && !receiving))
        return 1;
    return N;
}

static void make(struct data *d, int kind, int count, int variant)
{
    size_t ints = (size_t)count * N * 2 + 1;
    int k;

    memset(d, 0, sizeof *d);
    d->kind = kind, d->count = count;
    d->in_place = variant % 4 == 1 && (kind != 4 || rank == 0);
    d->apart = variant % 4 == 2;
    d->type = MPI_INT;
    if (d->apart && kind < 3) { /* an operation of MPI's own wants a type of MPI's own */
        d->apart = 0;
    } else if (d->apart) {
        MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &d->type);
        MPI_Type_commit(&d->type);
    }
    d->send = malloc(ints * sizeof(int));
    d->recv = malloc(ints * sizeof(int));
    for (k = 0; k < (int)ints; k++)
        d->send[k] = d->recv[k] = -1;
    for (k = 0; k < blocks_of(d, 0) * count; k++) {
        int *to = !d->in_place ? d->send : kind == 4 ? d->recv + rank * count * (1 + d->apart) : d->recv;

        to[k * (1 + d->apart)] = value(rank, k);
    }
}

static const void *source(const struct data *d)
{
    return d->in_place ? MPI_IN_PLACE : d->send;
}

static int wrong(const struct data *d)
{
    int k, bad = 0;

    for (k = 0; k < blocks_of(d, 1) * d->count; k++) {
        int got = d->recv[k * (1 + d->apart)], from = k / d->count, nth = k % d->count, want;

        if (d->kind < 2)
            want = 7 * (0 + 1 + 2 + 3) + 4 * (k % 1000);
        else if (d->kind == 2)
            want = 7 * (0 + 1 + 2 + 3) + 4 * ((rank * d->count + k) % 1000);
        else if (d->kind == 3)
            want = value(from, rank * d->count + nth);
        else
            want = value(from, nth);
        bad += got != want && (d->kind != 4 || rank == 0);
    }
    return bad;
}

static void drop(struct data *d)
{
    free(d->send);
    free(d->recv);
    if (d->apart)
        MPI_Type_free(&d->type);
}

/* Whether a call ended alike everywhere; and rightly where it did. Returns whether it ended for want of memory. */
static int judge(struct data *d, MPI_Comm comm)
{
    int class, low, high;

    MPI_Error_class(d->error, &class);
    PMPI_Allreduce(&class, &low, 1, MPI_INT, MPI_MIN, comm);
    PMPI_Allreduce(&class, &high, 1, MPI_INT, MPI_MAX, comm);
    EXPECT(low == high);
    EXPECT(class == MPI_SUCCESS || class == MPI_ERR_NO_MEM);
    EXPECT(class != MPI_SUCCESS || wrong(d) == 0);
    return class == MPI_ERR_NO_MEM;
}

static int call(MPI_Comm comm, int kind, int count, int variant)
{
    struct data d;
    int lost;

    make(&d, kind, count, variant);
    d.error = calls[kind](source(&d), d.recv, d.count, d.type, MPI_SUM, comm);
    lost = judge(&d, comm);
    drop(&d);
    return lost;
}

/* ---- sequences of calls; each returns how many of them ended for want of memory */

static int blocking(MPI_Comm comm)
{
    int kind, lost = 0;

    for (kind = 0; kind < KINDS; kind++) {
        lost += call(comm, kind, 3, kind);
        lost += call(comm, kind, 3, kind); /* needs no more */
        lost += call(comm, kind, 700, kind + 1);
        lost += call(comm, kind, 5, kind + 2);
    }
    lost += call(comm, 2, LARGE, 0);
    lost += call(comm, 3, LARGE, 2);
    return lost;
}

static int begun(MPI_Comm comm)
{
    static struct data d[CALLS];
    int k, flag, lost = 0;

    for (k = 0; k < CALLS; k++) {
        make(&d[k], k % KINDS, k == 44 ? LARGE : 1 + k * k % 300, k / KINDS);
        d[k].error = begins[k % KINDS](source(&d[k]), d[k].recv, d[k].count, d[k].type, MPI_SUM, comm,
                                       &d[k].request);
        EXPECT((d[k].error == MPI_SUCCESS) == (d[k].request != NULL));
        if ((k + rank) % 7 == 3 && d[0].request != NULL)
            d[0].error = pod_test(&d[0].request, &flag);
        if (rank % 2 && k > CALLS / 2 && d[k - 40].request != NULL) /* requests are kept for different times */
            d[k - 40].error = pod_wait(&d[k - 40].request);
        if (k == 30)
            lost += call(comm, 0, 1000, 0);
    }
    for (k = 0; k < CALLS; k++) {
        struct data *it = &d[(k * 7 + rank * 11) % CALLS];

        if (it->request != NULL)
            it->error = pod_wait(&it->request);
    }
    for (k = 0; k < CALLS; k++) {
        lost += judge(&d[k], comm);
        drop(&d[k]);
    }
    return lost;
}

static int persistent(MPI_Comm comm)
{
    static struct data d[4 * KINDS];
    int k, round, lost = 0;

    for (k = 0; k < 4 * KINDS; k++) {
        make(&d[k], k % KINDS, 50 + k, k / KINDS);
        d[k].error = inits[k % KINDS](source(&d[k]), d[k].recv, d[k].count, d[k].type, MPI_SUM, comm,
                                      MPI_INFO_NULL, &d[k].request);
        EXPECT((d[k].error == MPI_SUCCESS) == (d[k].request != NULL));
    }
    for (round = 0; round < 2; round++) {
        for (k = 0; k < 4 * KINDS; k++) {
            int at = (k * 3 + rank) % (4 * KINDS); /* in different orders */

            if (d[at].request != NULL && (round == 0 || at / KINDS != 1)) /* in place: once */
                EXPECT(pod_start(&d[at].request) == MPI_SUCCESS);
        }
        for (k = 0; k < 4 * KINDS; k++)
            if (d[k].request != NULL)
                d[k].error = pod_wait(&d[k].request);
    }
    for (k = 0; k < 4 * KINDS; k++) {
        lost += judge(&d[k], comm);
        if (d[k].request != NULL)
            EXPECT(pod_free(&d[k].request) == MPI_SUCCESS);
        drop(&d[k]);
    }
    return lost;
}

/* A nonblocking call that cannot be, after which a rank asks nothing more of the library; one without data. */
static int mixed(MPI_Comm comm)
{
    struct data d;
    pod_request nothing;
    int lost, error;

    make(&d, 0, 10, 0);
    d.error = pod_sums_begin(d.send, d.recv, 10, MPI_INT, MPI_SUM, comm, &d.request);
    if (d.request != NULL)
        d.error = pod_wait(&d.request);
    lost = judge(&d, comm); /* by a collective of the MPI's: ranks that wait here carry nothing on */
    drop(&d);
    EXPECT(pod_sums_begin(NULL, NULL, 0, MPI_INT, MPI_SUM, comm, &nothing) == MPI_SUCCESS);
    EXPECT(pod_wait(&nothing) == MPI_SUCCESS && nothing == NULL);
    EXPECT(pod_sums_init(NULL, NULL, 0, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &nothing) == MPI_SUCCESS);
    EXPECT(pod_start(&nothing) == MPI_SUCCESS && pod_start(&nothing) == MPI_ERR_REQUEST);
    EXPECT(pod_free(&nothing) == MPI_ERR_REQUEST && pod_wait(&nothing) == MPI_SUCCESS);
    EXPECT(pod_start(&nothing) == MPI_SUCCESS && pod_wait(&nothing) == MPI_SUCCESS);
    EXPECT(pod_free(&nothing) == MPI_SUCCESS);
    error = pod_attach(comm);
    EXPECT(error == MPI_SUCCESS || error == MPI_ERR_NO_MEM);
    lost += error != MPI_SUCCESS;
    lost += call(comm, 0, 9, 0);
    make(&d, 3, 2000, 0);
    d.error = pod_swap_begin(d.send, d.recv, 2000, MPI_INT, MPI_SUM, comm, &d.request);
    if (d.request != NULL)
        d.error = pod_wait(&d.request);
    lost += judge(&d, comm);
    drop(&d);
    return lost;
}

static MPI_Comm of_thread[THREADS];

static void *in_thread(void *number)
{
    int *lost = number;
    MPI_Comm comm = of_thread[*lost];

    *lost = call(comm, 0, 100, 0) + call(comm, 2, 1000, 0) + call(comm, 3, 10, 0);
    return NULL;
}

static int threads(MPI_Comm comm)
{
    pthread_t running[THREADS];
    int numbers[THREADS], k, lost = 0;

    for (k = 0; k < THREADS; k++) {
        PMPI_Comm_dup(comm, &of_thread[k]);
        numbers[k] = k;
    }
    for (k = 0; k < THREADS; k++)
        pthread_create(&running[k], NULL, in_thread, &numbers[k]);
    for (k = 0; k < THREADS; k++) {
        pthread_join(running[k], NULL);
        lost += numbers[k];
        PMPI_Comm_free(&of_thread[k]);
    }
    return lost;
}

/* ---- every allocation in turn */

static int attempt(int (*sequence)(MPI_Comm), int victim, int nth, int to_the_end)
{
    MPI_Comm comm;
    int lost, any, before = live;

    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    allocations = failed = 0;
    fail_from = rank == victim ? nth : 0;
    fail_to = to_the_end ? 1 << 30 : nth;
    lost = sequence(comm);
    fail_from = 0;
    PMPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, comm);
    EXPECT((lost > 0) == (any > 0));
    EXPECT(call(comm, 0, 20, 0) == 0 && call(comm, 2, 900, 0) == 0 && call(comm, 3, 30, 2) == 0);
    PMPI_Comm_free(&comm);
    EXPECT(live == before);
    if (live != before)
        live = before;
    return any > 0;
}

/* Calls that need no more memory than those before cost no vote; of nonblocking ones, few do. */
static void steady(void)
{
    enum { TIMES = 200 };
    MPI_Comm comm;
    int k;

    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(call(comm, 0, 100, 0) == 0);
    votes = 0;
    for (k = 0; k < TIMES; k++)
        EXPECT(call(comm, 0, 1 + k % 100, 0) == 0);
    EXPECT(votes == 0);
    for (k = 0; k < TIMES; k++) {
        struct data d;

        make(&d, 0, 100, 0);
        EXPECT(pod_sums_begin(d.send, d.recv, 100, MPI_INT, MPI_SUM, comm, &d.request) == MPI_SUCCESS);
        EXPECT(pod_wait(&d.request) == MPI_SUCCESS && wrong(&d) == 0);
        drop(&d);
    }
    EXPECT(votes <= 8 + TIMES / 32);
    PMPI_Comm_free(&comm);
}

/* The duplication fails on one rank. */
static void without_duplicate(int victim)
{
    MPI_Comm comm;
    pod_request request = NULL;
    int before = live, error, mine = 1, sum = 0;

    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    no_duplicate = rank == victim;
    EXPECT(pod_attach(comm) == MPI_ERR_NO_MEM);
    EXPECT(pod_sums(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_NO_MEM);
    error = pod_sums_begin(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    EXPECT(error == MPI_ERR_NO_MEM && request == NULL);
    no_duplicate = 0;
    EXPECT(call(comm, 0, 20, 0) == 0);
    PMPI_Comm_free(&comm);
    EXPECT(live == before);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; int (*sequence)(MPI_Comm); } forms[] = {
        {"blocking", blocking}, {"begun", begun}, {"persistent", persistent}, {"mixed", mixed}, {"threads", threads},
    };
    int given, k, sum, tried = 0, step = argc > 2 ? atoi(argv[2]) : 1;

    alarm(500);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (k = 0; k < 5; k++) {
        int victim = 0, nth = 1, more = 1, turn = 0;

        if (argc < 2 || strcmp(argv[1], forms[k].name) != 0)
            continue;
        EXPECT(attempt(forms[k].sequence, -1, 0, 0) == 0);
        for (; step > 0 && more; nth += step, victim = (victim + 1) % N, turn++) {
            int all;

            more = 0;
            for (all = step > 1 ? turn % 2 : 0; all < (step > 1 ? turn % 2 + 1 : 2); all++)
                more |= attempt(forms[k].sequence, victim, nth, all);
            tried += more;
        }
    }
    if (step > 0)
        without_duplicate(2);
    if (argc > 1 && strcmp(argv[1], "mixed") == 0)
        steady();
    PMPI_Allreduce(&failures, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("memory-end tried=%d failures=%d\n", tried, sum);
    return 0;
}
