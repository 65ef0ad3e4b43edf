/* Calls generated collectives, checks every element on every rank, and times them.
 *
 * Every rank can compute the input of every other rank. So each rank checks its results against a
 * reference that no message has carried. Rank 0 prints one line for every case.
 */
#define _POSIX_C_SOURCE 200112L

#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

enum kind { ALLGATHER, REDUCE_SCATTER, ALLREDUCE, BROADCAST, REDUCE, GATHER, SCATTER, ALLTOALL, CUSTOM, CUSTOM_REDUCTION };

/*@CALLS@*/

struct algorithm {
    const char *name;
    collective *call;
    enum kind kind;
    int root;
    int members; /* ranks with data: the first; the others only relay */
    const int64_t *weights; /* of the shards that were planned; none where all are equal */
    int64_t whole;
    /* Of a custom collective: its shards, the rank that has each, and those in the input and output of each rank. */
    int shards;
    const int *holders, *begins, *listed;
    const int *first_sources, *sources; /* of each shard of one that reduces: the ranks that contribute */
};

/*@ALGORITHMS@*/

static int ranks, me;
static int members; /* of the algorithm at hand */
static MPI_Comm among[sizeof algorithms / sizeof *algorithms]; /* the members of each */

static void create_communicators(void)
{
    size_t k;

    for (k = 0; k < sizeof algorithms / sizeof *algorithms; k++) {
        among[k] = MPI_COMM_WORLD;
        if (algorithms[k].members < ranks)
            MPI_Comm_split(MPI_COMM_WORLD, me < algorithms[k].members ? 0 : MPI_UNDEFINED, me, &among[k]);
    }
}

static void free_communicators(void)
{
    size_t k;

    for (k = 0; k < sizeof algorithms / sizeof *algorithms; k++)
        if (among[k] != MPI_COMM_NULL && among[k] != MPI_COMM_WORLD)
            MPI_Comm_free(&among[k]);
}

/* ---- Element types ----------------------------------------------------------------------------- */

enum dtype { INT32, INT64, FLOAT32, FLOAT64, STRIDED, NUM_DTYPES };
static const char *const dtype_names[] = {"int32", "int64", "float32", "float64", "strided"};
static const size_t extents[] = {4, 8, 4, 8, 16};
static MPI_Datatype dtypes[NUM_DTYPES];

/* A strided element is two int32, at bytes 4 and 12 of 16; the gaps must stay unchanged. */
static void create_dtypes(void)
{
    MPI_Datatype pair, shifted;
    int lengths[] = {1, 1};
    MPI_Aint places[] = {4, 12};

    dtypes[INT32] = MPI_INT32_T;
    dtypes[INT64] = MPI_INT64_T;
    dtypes[FLOAT32] = MPI_FLOAT;
    dtypes[FLOAT64] = MPI_DOUBLE;
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT32_T, &pair);
    MPI_Type_create_resized(pair, 0, 16, &shifted);
    MPI_Type_commit(&shifted);
    MPI_Type_free(&pair);
    dtypes[STRIDED] = shifted;
}

static void put(enum dtype dtype, unsigned char *at, int64_t value, int64_t second)
{
    int32_t i32 = (int32_t)value, other = (int32_t)second;
    float f32 = (float)value;
    double f64 = (double)value;

    switch (dtype) {
    case INT32: memcpy(at, &i32, 4); break;
    case INT64: memcpy(at, &value, 8); break;
    case FLOAT32: memcpy(at, &f32, 4); break;
    case FLOAT64: memcpy(at, &f64, 8); break;
    default: memcpy(at + 4, &i32, 4), memcpy(at + 12, &other, 4);
    }
}

static int64_t get(enum dtype dtype, const unsigned char *at, int second)
{
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;

    switch (dtype) {
    case INT64: return memcpy(&i64, at, 8), i64;
    case FLOAT32: return memcpy(&f32, at, 4), (int64_t)f32;
    case FLOAT64: return memcpy(&f64, at, 8), (int64_t)f64;
    case STRIDED: return memcpy(&i32, at + (second ? 12 : 4), 4), i32;
    default: return memcpy(&i32, at, 4), i32;
    }
}

static void show(enum dtype dtype, const unsigned char *at, char *text, size_t room)
{
    float f32;
    double f64;

    switch (dtype) {
    case FLOAT32: memcpy(&f32, at, 4), snprintf(text, room, "%.9g", (double)f32); break;
    case FLOAT64: memcpy(&f64, at, 8), snprintf(text, room, "%.17g", f64); break;
    case STRIDED:
        snprintf(text, room, "(%" PRId64 ", %" PRId64 ")", get(dtype, at, 0), get(dtype, at, 1));
        break;
    default: snprintf(text, room, "%" PRId64, get(dtype, at, 0));
    }
}

/* ---- Operations -------------------------------------------------------------------------------- */

enum op { SUM, MAX, MIN, PROD, USER, NO_OP, NUM_OPS };
static const char *const op_names[] = {"sum", "max", "min", "prod", "user", "none"};
static MPI_Op ops[NUM_OPS];
static enum dtype user_dtype; /* of the current call */

enum { MODULUS = 1009 };

static int64_t apply(enum op op, int64_t a, int64_t b)
{
    switch (op) {
    case SUM: return a + b;
    case MAX: return a > b ? a : b;
    case MIN: return a < b ? a : b;
    case PROD: return a * b;
    default: return (a + b) % MODULUS;
    }
}

/* The user-defined operation: addition modulo a prime, for every element type. */
static void user_function(void *in, void *inout, int *count, MPI_Datatype *type)
{
    enum dtype dtype = user_dtype;
    unsigned char *a = in, *b = inout;
    int k;

    (void)type;
    for (k = 0; k < *count; k++, a += extents[dtype], b += extents[dtype])
        put(dtype, b, apply(USER, get(dtype, a, 0), get(dtype, b, 0)),
            dtype == STRIDED ? apply(USER, get(dtype, a, 1), get(dtype, b, 1)) : 0);
}

static void create_ops(void)
{
    ops[SUM] = MPI_SUM;
    ops[MAX] = MPI_MAX;
    ops[MIN] = MPI_MIN;
    ops[PROD] = MPI_PROD;
    MPI_Op_create(user_function, 1, &ops[USER]);
    ops[NO_OP] = MPI_OP_NULL;
}

/* Input element `index` of `rank`. Values and all partial results are integers below 2^24, hence exact
 * in every type: factors are 1, -1, and 2 on at most eight ranks. */
static int64_t value(enum op op, int rank, int64_t index)
{
    uint32_t h = ((uint32_t)index + 1u) * 2654435761u + (uint32_t)rank * 2246822519u;
    int64_t spread = (1 << 24) / (op == NO_OP ? 1 : ranks);

    h ^= h >> 15;
    h *= 2654435769u;
    h ^= h >> 13;
    if (op == PROD)
        return (rank + index) % ranks < 8 && h & 1 ? 2 : h & 2 ? -1 : 1;
    return op == USER ? h % MODULUS : h % spread - spread / 2;
}

/* ---- Buffers ----------------------------------------------------------------------------------- */

enum { GUARD = 64, FILL = 0xA5 };

/* `elements` elements between guards; all bytes begin as FILL. */
struct buffer {
    unsigned char *all, *data;
    size_t bytes;
};

static void create(struct buffer *buffer, enum dtype dtype, int64_t elements)
{
    buffer->bytes = (size_t)elements * extents[dtype] + 2 * GUARD;
    buffer->all = malloc(buffer->bytes);
    if (buffer->all == NULL) {
        fprintf(stderr, "rank %d has no memory for %" PRId64 " elements\n", me, elements);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    memset(buffer->all, FILL, buffer->bytes);
    buffer->data = buffer->all + GUARD;
}

static void copy(struct buffer *to, const struct buffer *from)
{
    memcpy(to->all, from->all, from->bytes);
}

/* Elements at, at + 1, ... become input elements first, first + 1, ... of `rank`. */
static void fill(struct buffer *buffer, enum dtype dtype, enum op op, int64_t at, int64_t n,
                 int rank, int64_t first)
{
    unsigned char *to = buffer->data + (size_t)at * extents[dtype];
    int64_t i, step = dtype == STRIDED ? 2 : 1;

    for (i = 0; i < n; i++, to += extents[dtype])
        put(dtype, to, value(op, rank, step * (first + i)),
            step == 2 ? value(op, rank, 2 * (first + i) + 1) : 0);
}

/* ... or become those of all members, reduced. The last reference is kept, because several types use it. */
static void fill_reduced(struct buffer *buffer, enum dtype dtype, enum op op, int64_t n,
                         int64_t first)
{
    static int64_t *kept;
    static int64_t kept_first = -1, kept_n = -1;
    static enum op kept_op;
    static int kept_members;
    int64_t step = dtype == STRIDED ? 2 : 1, i;
    int r;

    if (kept == NULL || kept_first != step * first || kept_n != step * n || kept_op != op ||
        kept_members != members) {
        free(kept);
        kept = malloc((size_t)(step * n) * sizeof *kept + 1);
        if (kept == NULL)
            MPI_Abort(MPI_COMM_WORLD, 3);
        kept_first = step * first, kept_n = step * n, kept_op = op, kept_members = members;
        for (r = 0; r < members; r++)
            for (i = 0; i < kept_n; i++) {
                int64_t v = value(op, r, kept_first + i);

                kept[i] = r == 0 ? v : apply(op, kept[i], v);
            }
    }
    for (i = 0; i < n; i++)
        put(dtype, buffer->data + (size_t)i * extents[dtype], kept[step * i],
            step == 2 ? kept[step * i + 1] : 0);
}
