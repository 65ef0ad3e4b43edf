/* All forms of functions that take the root, at every root: what they leave in every element of every buffer.
 *
 * The library is `pod`, with `pod_news` (broadcast), `pod_total` (reduce), `pod_heap` (gather), `pod_deal` (scatter). The
 * bits of the macro ROOTS say which roots they serve; calls of others end with MPI_ERR_ROOT.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "pod.h"

#define SERVED(root) ((root) >= 0 && ((unsigned long)(ROOTS) >> (root) & 1) != 0)

enum { NEWS, TOTAL, HEAP, DEAL, KINDS };
enum form { CALL, CALL_C, BEGIN, INIT, FORMS };
enum { FILL = -7, AT_ONCE = 3 };

typedef int call(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
typedef int call_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm);
typedef int begin(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm, pod_request *);
typedef int init(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm, MPI_Info, pod_request *);

struct function {
    const char *name;
    call *call;
    call_c *call_c;
    begin *begin;
    init *init;
};

#define FUNCTION(name) {#name, pod_##name, pod_##name##_c, pod_##name##_begin, pod_##name##_init}
static const struct function functions[KINDS] = {FUNCTION(news), FUNCTION(total), FUNCTION(heap), FUNCTION(deal)};

/* One call: `stride` ints from one element to the next. */
struct test {
    int kind, root, count, stride, in_place;
    int *send, *recv;
    MPI_Datatype type;
};

static int rank, ranks, failures, calls;

static void fail(const struct test *t, int form, const char *what, int where)
{
    if (failures++ < 9)
        printf("roots rank=%d %s root=%d count=%d stride=%d in_place=%d form=%d: %s %d\n", rank,
               functions[t->kind].name, t->root, t->count, t->stride, t->in_place, form, what, where);
    fflush(stdout);
}

/* Element k of the block from one rank to another. */
static int value(const struct test *t, int from, int to, int k)
{
    return (from * 31 + to * 7 + t->root * 131 + t->kind) * 1009 + k;
}

static size_t ints(const struct test *t)
{
    return (size_t)t->count * (size_t)t->stride * (size_t)ranks;
}

static void put(const struct test *t, int *buffer, int block, int from, int to)
{
    int k;

    for (k = 0; k < t->count; k++)
        buffer[(block * t->count + k) * t->stride] = value(t, from, to, k);
}

static void prepare(struct test *t)
{
    size_t k;
    int r, at_root = rank == t->root;
    int *from;

    t->send = malloc(ints(t) * sizeof *t->send);
    t->recv = malloc(ints(t) * sizeof *t->recv);
    for (k = 0; k < ints(t); k++)
        t->send[k] = t->recv[k] = FILL;
    from = t->in_place && at_root && t->kind != DEAL ? t->recv : t->send;
    if (t->kind == NEWS && at_root)
        put(t, from, 0, rank, 0);
    if (t->kind == TOTAL)
        put(t, from, 0, rank, 0);
    if (t->kind == HEAP)
        put(t, from, from == t->recv ? rank : 0, rank, 0);
    for (r = 0; t->kind == DEAL && at_root && r < ranks; r++)
        put(t, from, r, rank, r);
}

/* What element k of a block of recv must be. */
static int due(const struct test *t, int block, int k)
{
    int at_root = rank == t->root, sum = 0, r;

    if (t->kind == NEWS && block == 0)
        return at_root && !t->in_place ? t->recv[k * t->stride] : value(t, t->root, 0, k);
    if (t->kind == TOTAL && block == 0 && at_root) {
        for (r = 0; r < ranks; r++)
            sum += value(t, r, 0, k);
        return sum;
    }
    if (t->kind == HEAP && at_root)
        return value(t, block, 0, k);
    if (t->kind == DEAL && block == 0 && !(at_root && t->in_place))
        return value(t, t->root, rank, k);
    return FILL;
}

static void verify(struct test *t, int form)
{
    int block, k, gap;

    for (block = 0; block < ranks; block++)
        for (k = 0; k < t->count; k++) {
            int at = (block * t->count + k) * t->stride;

            if (t->recv[at] != due(t, block, k)) {
                fail(t, form, "element", block * t->count + k);
                block = ranks - 1;
                break;
            }
            for (gap = 1; gap < t->stride; gap++)
                if (t->recv[at + gap] != FILL)
                    fail(t, form, "gap", at + gap);
        }
    free(t->send);
    free(t->recv);
    calls++;
}

static const void *sent(const struct test *t)
{
    return t->in_place && rank == t->root && t->kind != DEAL ? MPI_IN_PLACE : t->send;
}

static void *received(const struct test *t)
{
    return t->in_place && rank == t->root && t->kind == DEAL ? MPI_IN_PLACE : t->recv;
}

static int carry_out(const struct test *t, enum form form)
{
    const struct function *f = &functions[t->kind];
    pod_request request = NULL;
    int error;

    switch (form) {
    case CALL: return f->call(sent(t), received(t), t->count, t->type, MPI_SUM, t->root, MPI_COMM_WORLD);
    case CALL_C: return f->call_c(sent(t), received(t), t->count, t->type, MPI_SUM, t->root, MPI_COMM_WORLD);
    case BEGIN:
        error = f->begin(sent(t), received(t), t->count, t->type, MPI_SUM, t->root, MPI_COMM_WORLD, &request);
        return error != MPI_SUCCESS ? error : pod_wait(&request);
    default:
        error = f->init(sent(t), received(t), t->count, t->type, MPI_SUM, t->root, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &request);
        if (error == MPI_SUCCESS)
            error = pod_start(&request);
        if (error == MPI_SUCCESS)
            error = pod_wait(&request);
        return error != MPI_SUCCESS ? error : pod_free(&request);
    }
}

static void try_one(struct test t, enum form form)
{
    int error;

    prepare(&t);
    error = carry_out(&t, form);
    if (SERVED(t.root)) {
        if (error != MPI_SUCCESS)
            fail(&t, (int)form, "error", error);
        verify(&t, (int)form);
        return;
    }
    if (error != MPI_ERR_ROOT)
        fail(&t, (int)form, "not MPI_ERR_ROOT but", error);
    free(t.send);
    free(t.recv);
}

/* Waits for calls that are under way at the same time. */
static void finish(struct test *tests, pod_request *requests, int number)
{
    int k;

    for (k = 0; k < number; k++) {
        if (pod_wait(&requests[k]) != MPI_SUCCESS)
            fail(&tests[k], BEGIN, "error of the wait", 0);
        verify(&tests[k], BEGIN);
    }
}

/* Calls of different roots under way at the same time. */
static void several(int kind, int count, MPI_Datatype type, int stride)
{
    struct test tests[AT_ONCE];
    pod_request requests[AT_ONCE];
    int root, k = 0;

    for (root = 0; root < ranks; root++) {
        struct test t = {kind, root, count, stride, 0, NULL, NULL, type};

        if (!SERVED(root))
            continue;
        prepare(&t);
        tests[k] = t;
        if (functions[kind].begin(t.send, t.recv, count, type, MPI_SUM, root, MPI_COMM_WORLD, &requests[k]) !=
            MPI_SUCCESS)
            fail(&t, BEGIN, "error of the begin", 0);
        if (++k == AT_ONCE) {
            finish(tests, requests, k);
            k = 0;
        }
    }
    finish(tests, requests, k);
}

int main(int argc, char **argv)
{
    static const int counts[] = {1, 7, 1500, 3};
    MPI_Datatype wide;
    int kind, root, n, form, in_place, all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &wide);
    MPI_Type_commit(&wide);
    for (n = 0; n < 4; n++)
        for (kind = 0; kind < KINDS; kind++)
            for (root = -1; root <= ranks; root++)
                for (form = 0; form < FORMS; form++)
                    for (in_place = 0; in_place < 2; in_place++) {
                        struct test t = {kind, root, counts[n], 1, in_place, NULL, NULL, MPI_INT};

                        if (SERVED(root) || (n == 0 && !in_place))
                            try_one(t, (enum form)form);
                        t.type = wide;
                        t.stride = 2;
                        if (SERVED(root) && kind != TOTAL && form == CALL)
                            try_one(t, CALL);
                    }
    for (kind = 0; kind < KINDS; kind++) {
        several(kind, 900, MPI_INT, 1);
        several(kind, 40000, MPI_INT, 1); /* more memory than any call before */
    }
    MPI_Type_free(&wide);
    MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("calls %d failures %d\n", calls, all);
    MPI_Finalize();
    return failures > 0;
}
