/* Functions with counts of a generated library against the MPI's own, for random counts, types, displacements and forms.
 *
 * `counts CASES` runs on N ranks. `counts 0 STEP` lets a rank have no memory at its 1st, (1 + STEP)th, .. allocation in
 * generated code, alone and with all after it: calls end alike on all ranks, and the next is right. STEP 0: CASES, without the
 * call that leaves messages behind. The library is `pod`, with `pod_all` (allgatherv), `pod_pieces` (reduce-scatterv), `pod_swap`
 * (alltoallv), `pod_heap` (gatherv to ROOT) and `pod_deal` (scatterv from ROOT). CASES is the number of random cases
 * of each. All ranks draw the same cases.
 */
#define _POSIX_C_SOURCE 200112L

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "pod.h"

#ifndef RANKS
#define RANKS 4
#endif

enum { N = RANKS, ROOT = 1, AT_ONCE = 12 };
enum kind { ALL, PIECES, SWAP, HEAP, DEAL, KINDS };
enum form { CALL, CALL_C, BEGIN, BEGIN_C, INIT, INIT_C, FORMS };
/* A datum is two ints: two elements; one; one with gaps; one at an absolute address. */
enum type { INTS, PAIR, GAPS, ABSOLUTE, TYPES };

static const int extents[TYPES] = {4, 8, 16, 8}, elements[TYPES] = {2, 1, 1, 1};
static int rank, failures, moved;
static MPI_Comm on; /* of the library's calls */

static void expect(int ok, const char *what, int line, int number)
{
    if (ok)
        return;
    if (failures++ < 9)
        printf("counts rank=%d line=%d case=%d failed: %s\n", rank, line, number, what);
    fflush(stdout);
}

#define EXPECT(condition, number) expect(condition, #condition, __LINE__, number)

static uint32_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(state >> 4) * below) >> 28);
}

/* ---- one side of a call: blocks of some type, in a buffer with room between them */

struct side {
    enum type kind;
    MPI_Datatype type;
    int data[N], counts[N], displs[N], blocks, bytes;
    MPI_Count large[N];
    MPI_Aint far[N];
    unsigned char *mine, *theirs, *before; /* the buffers of both calls, and their bytes before these */
    const void *argument;
};

static MPI_Datatype typed(enum type kind, void *buffer)
{
    MPI_Datatype inner, outer;
    int lengths[] = {1, 1};
    MPI_Aint places[] = {4, 12}, at;

    switch (kind) {
    case INTS: return MPI_INT;
    case PAIR: MPI_Type_contiguous(2, MPI_INT, &outer); break;
    case GAPS:
        MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &inner);
        MPI_Type_create_resized(inner, 0, 16, &outer);
        MPI_Type_free(&inner);
        break;
    default:
        MPI_Get_address(buffer, &at);
        lengths[0] = 2;
        MPI_Type_create_hindexed(1, lengths, &at, MPI_INT, &inner);
        MPI_Type_create_resized(inner, 0, 8, &outer);
        MPI_Type_free(&inner);
    }
    MPI_Type_commit(&outer);
    return outer;
}

static void prepare(struct side *side, enum type kind, int blocks, const int *data, int spread)
{
    int at = 0, k, order = (int)draw(2);

    memset(side, 0, sizeof *side);
    side->kind = kind;
    side->blocks = blocks;
    for (k = 0; k < blocks; k++) {
        int b = spread && order ? blocks - 1 - k : k;

        at += spread ? (int)draw(3) : 0;
        side->data[b] = data[b];
        side->counts[b] = data[b] * elements[kind];
        side->displs[b] = at * elements[kind];
        side->large[b] = side->counts[b];
        side->far[b] = side->displs[b];
        at += data[b];
    }
    side->bytes = (at + 2) * extents[kind] * elements[kind];
    side->mine = malloc((size_t)side->bytes);
    side->theirs = malloc((size_t)side->bytes);
    side->before = malloc((size_t)side->bytes);
    for (k = 0; k < side->bytes; k += 4) {
        int value = (int)((uint32_t)(rank + 1) * 1000003u + (uint32_t)k * 7u + state) % 100000;

        memcpy(side->before + k, &value, 4);
    }
    memcpy(side->mine, side->before, (size_t)side->bytes);
    memcpy(side->theirs, side->before, (size_t)side->bytes);
    side->type = typed(kind, side->mine);
    side->argument = kind == ABSOLUTE ? MPI_BOTTOM : side->mine;
}

static void release(struct side *side)
{
    if (side->kind != INTS)
        MPI_Type_free(&side->type);
    free(side->mine), free(side->theirs), free(side->before);
}

static int same(const struct side *side)
{
    return memcmp(side->mine, side->theirs, (size_t)side->bytes) == 0;
}

/* ---- one case */

struct test {
    enum kind kind;
    int in_place, all[N * N]; /* data from each rank to each, or of each */
    struct side send, recv;
    MPI_Op op;
};

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int *a = in, *b = inout, k;

    (void)type;
    for (k = 0; k < *count; k++)
        b[4 * k + 1] += a[4 * k + 1], b[4 * k + 3] += a[4 * k + 3];
}

static MPI_Op user;

static void set_up(struct test *t, enum kind kind, int number)
{
    int shards = kind == SWAP ? N * N : N, k, row[N], column[N];
    int most = number % 17 == 5 ? 3000 : number % 3 == 0 ? 3 : 60, skewed = number % 11 == 1;
    enum type mine, other;

    state = (uint32_t)(number * 64 + (int)kind + 1) * 2654435761u;
    t->kind = kind;
    t->in_place = (int)draw(3) == 0;
    for (k = 0; k < N * N; k++)
        t->all[k] = number % 11 == 0 || draw(3) == 0 ? 0 : (int)draw((uint32_t)most + 1);
    if (skewed) {
        memset(t->all, 0, sizeof t->all);
        t->all[draw((uint32_t)shards)] = 100 + (int)draw(1000);
    }
    if (kind == SWAP && t->in_place)
        for (k = 0; k < N * N; k++)
            t->all[k / N * N + k % N] = t->all[(k % N < k / N ? k % N * N + k / N : k)];
    for (k = 0; k < N; k++) {
        row[k] = kind == SWAP ? t->all[rank * N + k] : t->all[k];
        column[k] = kind == SWAP ? t->all[k * N + rank] : t->all[k];
    }
    /* ranks describe the same data by types of their own */
    for (k = 0; k < rank; k++)
        draw(2), draw(2);
    mine = (enum type)draw(TYPES);
    other = (enum type)draw(TYPES);
    if (kind == PIECES)
        mine = other = number % 2 ? GAPS : INTS;
    t->op = mine == GAPS ? user : MPI_SUM;
    switch (kind) {
    case ALL:
        prepare(&t->recv, other, N, column, 1);
        prepare(&t->send, mine, 1, &row[rank], 0);
        break;
    case PIECES:
        prepare(&t->send, mine, N, row, 0);
        prepare(&t->recv, other, t->in_place ? N : 1, t->in_place ? row : &row[rank], 0);
        break;
    case SWAP:
        prepare(&t->send, mine, N, row, 1);
        prepare(&t->recv, other, N, column, 1);
        break;
    case HEAP:
        prepare(&t->send, mine, 1, &row[rank], 0);
        prepare(&t->recv, other, rank == ROOT ? N : 0, column, 1);
        break;
    default:
        prepare(&t->send, mine, rank == ROOT ? N : 0, row, 1);
        prepare(&t->recv, other, 1, &column[rank], 0);
    }
    for (k = 0; k < shards; k++)
        moved += t->all[k];
}

/* The counts of all ranks' blocks in a reduce-scatter, its one list. */
static int pieces_counts[N];
static MPI_Count pieces_large[N];

static int pieces(const struct test *t, int k)
{
    return t->all[k] * elements[t->send.kind];
}

/* Copies the ints of a block from (or to) the buffer of the reference, as the side's type has them. */
static void flat(const struct side *side, int block, int *ints, int to)
{
    int unit = extents[side->kind] * elements[side->kind], k;
    unsigned char *at = side->theirs + side->displs[block] * extents[side->kind];

    for (k = 0; k < side->data[block]; k++, at += unit, ints += 2) {
        unsigned char *first = at + (side->kind == GAPS ? 4 : 0), *second = at + (side->kind == GAPS ? 12 : 4);

        if (to)
            memcpy(first, &ints[0], 4), memcpy(second, &ints[1], 4);
        else
            memcpy(&ints[0], first, 4), memcpy(&ints[1], second, 4);
    }
}

/* The blocks of a side as MPI's own collectives see them: of plain ints. (Some of them hang where ranks describe the
 * same data by different types.) */
struct plain {
    int counts[N], displs[N], *ints;
};

static struct plain flattened(const struct side *side, int first, int blocks)
{
    struct plain plain;
    int at = 0, k;

    for (k = 0; k < blocks; at += plain.counts[k++]) {
        plain.counts[k] = 2 * side->data[first + k];
        plain.displs[k] = at;
    }
    plain.ints = malloc((size_t)(at + 1) * sizeof(int));
    for (k = 0; k < blocks; k++)
        flat(side, first + k, plain.ints + plain.displs[k], 0);
    return plain;
}

static void theirs(struct test *t)
{
    struct side *s = &t->send, *r = &t->recv;
    MPI_Comm comm = MPI_COMM_WORLD;
    int here = t->in_place && (t->kind != HEAP || rank == ROOT), own = t->kind == ALL || t->kind == HEAP, k;
    int kept = t->in_place && t->kind == DEAL && rank == ROOT, blocks = t->kind == PIECES ? 1 : r->blocks;
    struct plain in = here && t->kind != DEAL ? flattened(r, own ? rank : 0, own ? 1 : N) : flattened(s, 0, s->blocks);
    struct plain out = flattened(r, t->kind == PIECES && t->in_place ? rank : 0, blocks);
    MPI_Request request;
    int done = 0;

    switch (t->kind) {
    case ALL:
        MPI_Iallgatherv(in.ints, in.counts[0], MPI_INT, out.ints, out.counts, out.displs, MPI_INT, comm, &request);
        break;
    case PIECES: MPI_Ireduce_scatter(in.ints, out.ints, in.counts, MPI_INT, MPI_SUM, comm, &request); break;
    case SWAP:
        MPI_Ialltoallv(in.ints, in.counts, in.displs, MPI_INT, out.ints, out.counts, out.displs, MPI_INT, comm,
                       &request);
        break;
    case HEAP:
        MPI_Igatherv(in.ints, in.counts[0], MPI_INT, out.ints, out.counts, out.displs, MPI_INT, ROOT, comm, &request);
        break;
    default:
        MPI_Iscatterv(in.ints, in.counts, in.displs, MPI_INT, out.ints, out.counts[0], MPI_INT, ROOT, comm, &request);
    }
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
        sched_yield();
    if (t->kind == PIECES && t->in_place) { /* the result replaces what is first, whatever block that is */
        struct side first = *r;

        first.data[0] = t->all[rank];
        flat(&first, 0, out.ints, 1);
    }
    for (k = 0; k < blocks && !kept && !(t->kind == PIECES && t->in_place); k++)
        flat(r, k, out.ints + out.displs[k], 1);
    free(in.ints), free(out.ints);
}

static int finish(int error, pod_request *request, int repeats)
{
    int k;

    if (error == MPI_SUCCESS && repeats == 0)
        return pod_wait(request);
    for (k = 0; k < repeats && error == MPI_SUCCESS; k++) {
        error = pod_start(request);
        if (error == MPI_SUCCESS)
            error = pod_wait(request);
    }
    if (error == MPI_SUCCESS)
        error = pod_free(request);
    return error;
}

/* Begins a call in some form; blocking forms end it as well. */
static int mine(struct test *t, enum form form, pod_request *request)
{
    struct side *s = &t->send, *r = &t->recv;
    const void *send = s->argument;
    void *recv = (void *)(intptr_t)r->argument;
    MPI_Comm comm = on;
    MPI_Info info = MPI_INFO_NULL;
    int here = t->in_place && (t->kind == ALL || t->kind == PIECES || t->kind == SWAP || rank == ROOT), k;

    if (here && t->kind == DEAL)
        recv = MPI_IN_PLACE;
    else if (here)
        send = MPI_IN_PLACE;
    for (k = 0; k < N && t->kind == PIECES; k++)
        pieces_large[k] = pieces_counts[k] = pieces(t, k);

#define ALL_ARGUMENTS(c, d) send, s->c[0], s->type, recv, r->c, r->d, r->type
#define SWAP_ARGUMENTS(c, d) send, s->c, s->d, s->type, recv, r->c, r->d, r->type
#define DEAL_ARGUMENTS(c, d) send, s->c, s->d, s->type, recv, r->c[0], r->type, ROOT
#define FORMS_OF(name, narrow, wide)                                                                                   \
    switch (form) {                                                                                                    \
    case CALL: return name(narrow, comm);                                                                              \
    case CALL_C: return name##_c(wide, comm);                                                                          \
    case BEGIN: return name##_begin(narrow, comm, request);                                                            \
    case BEGIN_C: return name##_begin_c(wide, comm, request);                                                          \
    case INIT: return name##_init(narrow, comm, info, request);                                                        \
    default: return name##_init_c(wide, comm, info, request);                                                          \
    }
#define PIECES_ARGUMENTS(c) send, recv, c, s->type, t->op
#define COMMA ,
    switch (t->kind) {
    case ALL: FORMS_OF(pod_all, ALL_ARGUMENTS(counts, displs), ALL_ARGUMENTS(large, far))
    case PIECES: FORMS_OF(pod_pieces, PIECES_ARGUMENTS(pieces_counts), PIECES_ARGUMENTS(pieces_large))
    case SWAP: FORMS_OF(pod_swap, SWAP_ARGUMENTS(counts, displs), SWAP_ARGUMENTS(large, far))
    case HEAP: FORMS_OF(pod_heap, ALL_ARGUMENTS(counts, displs) COMMA ROOT, ALL_ARGUMENTS(large, far) COMMA ROOT)
    default: FORMS_OF(pod_deal, DEAL_ARGUMENTS(counts, displs), DEAL_ARGUMENTS(large, far))
    }
}

static void check(struct test *t, int number)
{
    EXPECT(same(&t->recv), number);
    EXPECT(memcmp(t->send.mine, t->send.before, (size_t)t->send.bytes) == 0, number);
    release(&t->send);
    release(&t->recv);
}

/* In place a second start of a request begins with the results of the first, except where the input stays. */
static int starts(const struct test *t)
{
    return t->in_place && (t->kind == PIECES || t->kind == SWAP) ? 1 : 2;
}

/* Lists that the caller has for a new use. */
static void overwrite(struct side *side)
{
    memset(side->counts, 0x55, sizeof side->counts);
    memset(side->displs, 0x55, sizeof side->displs);
    memset(side->large, 0x55, sizeof side->large);
    memset(side->far, 0x55, sizeof side->far);
}

static void run_case(enum kind kind, int number)
{
    enum form form = (enum form)(number % FORMS);
    pod_request request = NULL;
    struct test t;
    int error;

    set_up(&t, kind, number);
    theirs(&t);
    error = mine(&t, form, &request);
    if (form >= INIT) {
        overwrite(&t.send);
        overwrite(&t.recv);
        memset(pieces_counts, 0x55, sizeof pieces_counts);
        memset(pieces_large, 0x55, sizeof pieces_large);
    }
    if (form > CALL_C)
        error = finish(error, &request, form >= INIT ? starts(&t) : 0);
    EXPECT(error == MPI_SUCCESS, number);
    check(&t, number);
}

/* Many calls under way at once, ended in the other order on every second rank. */
static void run_at_once(int number)
{
    static struct test tests[AT_ONCE];
    pod_request requests[AT_ONCE];
    int k;

    for (k = 0; k < AT_ONCE; k++) {
        set_up(&tests[k], k % 2 ? SWAP : (enum kind)(k / 2 % KINDS == PIECES ? ALL : k / 2 % KINDS), number + k);
        theirs(&tests[k]);
    }
    for (k = 0; k < AT_ONCE; k++)
        EXPECT(mine(&tests[k], k % 3 ? BEGIN : BEGIN_C, &requests[k]) == MPI_SUCCESS, number);
    for (k = 0; k < AT_ONCE; k++)
        EXPECT(pod_wait(&requests[rank % 2 ? AT_ONCE - 1 - k : k]) == MPI_SUCCESS, number);
    for (k = 0; k < AT_ONCE; k++)
        check(&tests[k], number + k);
}

/* ---- what is refused: the same on all ranks, and the next call is right */

static void run_refusals(void)
{
    int counts[N], wrong[N], displs[N], in[N] = {0}, out[N], k;
    pod_request request;

    for (k = 0; k < N; k++)
        counts[k] = 1, wrong[k] = k == N - 1 ? -1 : 1, displs[k] = k;
    EXPECT(pod_all(in, 1, MPI_INT, out, wrong, displs, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_COUNT, 0);
    EXPECT(pod_all(in, 2, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_COUNT, 0);
    EXPECT(pod_all(in, 1, MPI_INT, NULL, counts, displs, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_BUFFER, 0);
    EXPECT(pod_all(in, 1, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_SELF) == MPI_ERR_COMM, 0);
    EXPECT(pod_all(in, 1, MPI_DATATYPE_NULL, out, counts, displs, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_TYPE, 0);
    EXPECT(pod_swap(in, wrong, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_COUNT, 0);
    EXPECT(pod_swap(in, counts, NULL, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_BUFFER, 0);
    EXPECT(pod_heap(in, -1, MPI_INT, out, counts, displs, MPI_INT, ROOT, MPI_COMM_WORLD) == MPI_ERR_COUNT, 0);
    EXPECT(pod_heap(in, 1, MPI_INT, out, counts, displs, MPI_INT, ROOT + 1, MPI_COMM_WORLD) == MPI_ERR_ROOT, 0);
    EXPECT(pod_pieces(in, out, counts, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD) == MPI_ERR_OP, 0);
    EXPECT(pod_pieces(in, out, wrong, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_ERR_COUNT, 0);
    EXPECT(pod_swap_begin(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD, NULL) ==
               MPI_ERR_ARG, 0);
    EXPECT(pod_swap_begin(in, wrong, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD, &request) ==
               MPI_ERR_COUNT && request == NULL, 0);
}

/* Counts of which sender and receiver differ end the call, and all later ones. */
static void run_mismatch(void)
{
    int counts[N], more[N], displs[N], in[2 * N] = {0}, out[2 * N], k;
    MPI_Comm comm;

    for (k = 0; k < N; k++)
        counts[k] = 1, more[k] = 2, displs[k] = 2 * k;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(pod_swap(in, counts, displs, MPI_INT, out, more, displs, MPI_INT, comm) == MPI_ERR_TRUNCATE, 0);
    EXPECT(pod_swap(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, comm) == MPI_ERR_TRUNCATE, 0);
    MPI_Comm_free(&comm);
}

/* ---- allocations of generated code that fail */

void *scarce_malloc(size_t bytes);
void *scarce_calloc(size_t number, size_t bytes);
void scarce_free(void *memory);

static int allocations, live, fail_from, fail_to;

static int fails(void)
{
    allocations++;
    if (fail_from > 0 && allocations >= fail_from && allocations <= fail_to)
        return 1;
    live++;
    return 0;
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
    live -= memory != NULL;
    free(memory);
}

/* One call; returns whether it ended for want of memory. */
static int try_case(enum kind kind, enum form form, int number)
{
    pod_request request = NULL;
    int error, class, low, high;
    struct test t;

    set_up(&t, kind, number);
    theirs(&t);
    error = mine(&t, form, &request);
    if (form > CALL_C)
        error = finish(error, &request, form >= INIT ? 1 : 0);
    MPI_Error_class(error, &class);
    MPI_Allreduce(&class, &low, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&class, &high, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    EXPECT(low == high, number);
    EXPECT(class == MPI_SUCCESS || class == MPI_ERR_NO_MEM, number);
    if (class == MPI_SUCCESS) {
        check(&t, number);
    } else {
        release(&t.send);
        release(&t.recv);
    }
    return class != MPI_SUCCESS;
}

/* Calls on a new communicator, of which some have no memory; returns the most allocations of any rank. */
static int try_calls(int nth, int alone)
{
    static const enum form forms[] = {CALL, BEGIN, INIT_C, CALL, CALL_C, BEGIN_C};
    int k, most, lost = 0, sum;

    MPI_Comm_dup(MPI_COMM_WORLD, &on);
    allocations = 0;
    fail_to = alone ? nth : 1 << 30;
    fail_from = rank == nth % N ? nth : 0;
    for (k = 0; k < 15; k++)
        lost += try_case((enum kind)(k % KINDS), forms[k % 6], 7 * nth + (k == 7 ? 5 : k));
    MPI_Allreduce(&allocations, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    fail_from = 0;
    for (k = 0; k < KINDS; k++)
        EXPECT(try_case((enum kind)k, forms[k], nth + k) == 0, nth);
    MPI_Comm_free(&on);
    MPI_Allreduce(&live, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(sum == 0, nth);
    EXPECT(lost > 0 || nth > most, nth);
    return most;
}

static void run_scarce(int step)
{
    int nth = 1, most = 1;

    for (; nth <= most; nth += step) {
        try_calls(nth, 1);
        most = try_calls(nth, 0);
    }
    on = MPI_COMM_WORLD;
}

int main(int argc, char **argv)
{
    int cases = argc > 1 ? atoi(argv[1]) : 0, step = argc > 2 ? atoi(argv[2]) : -1, k, size, sum = 0;

    alarm(200);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Op_create(add, 1, &user);
    if (size != N)
        MPI_Abort(MPI_COMM_WORLD, 2);
    on = MPI_COMM_WORLD;
    if (step > 0)
        run_scarce(step);
    else
        run_refusals();
    for (k = 0; k < cases; k++) {
        enum kind kind = ALL;

        for (; kind < KINDS; kind = (enum kind)(kind + 1))
            run_case(kind, k);
    }
    for (k = 0; k < 3 && step <= 0; k++)
        run_at_once(1000 + 100 * k);
    if (step < 0)
        run_mismatch();
    MPI_Allreduce(&failures, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("counts-end failures=%d moved=%d\n", sum, moved > 0);
    MPI_Op_free(&user);
    MPI_Finalize();
    return 0;
}
