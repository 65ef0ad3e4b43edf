/* A program that knows nothing of what is preloaded: every collective by its MPI_ name, and again by its PMPI_
 * name, which reaches the MPI itself. Whatever is in the buffers must be the same, byte by byte.
 *
 * Prints "calls N" and "wrong N"; the calls are the same on all ranks. Arguments: rounds, seed. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION >= 4
#define LARGE 1
#else
#define LARGE 0
#endif

enum { MOST = 3000, FUNCTIONS = 9 };

static unsigned long long state;
static int calls, wrong, callbacks, me;

static unsigned draw(unsigned below) /* the same on all ranks */
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % below;
}

static void add_all(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int k, size;
    MPI_Aint lb, extent;

    MPI_Type_size(*type, &size);
    MPI_Type_get_extent(*type, &lb, &extent);
    for (k = 0; k < *length; k++) { /* the first and, where there is one, the last integer of an element */
        int *a = (int *)((char *)in + k * extent), *b = (int *)((char *)inout + k * extent);

        *b += *a;
        if (size > 4)
            b[extent / 4 - 1] += a[extent / 4 - 1];
    }
}

/* Types whose data are pairs of ints: two ints, one contiguous, one with a gap, one in reverse order. */
static MPI_Datatype pairs[5];

static void make_types(void)
{
    int ones[2] = {1, 1};
    MPI_Aint backwards[2] = {4, 0};
    MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
    int k;

    MPI_Type_contiguous(2, MPI_INT, &pairs[0]);
    MPI_Type_commit(&pairs[0]);
    MPI_Type_dup(pairs[0], &pairs[1]);
    MPI_Type_vector(2, 1, 3, MPI_INT, &pairs[2]);
    MPI_Type_create_struct(2, ones, backwards, ints, &pairs[3]);
    MPI_Type_contiguous(1, pairs[1], &pairs[4]);
    for (k = 0; k < 5; k++)
        MPI_Type_commit(&pairs[k]);
}

/* `pairs` pairs of ints as some type: each rank may have its own. */
static void describe(int number, unsigned how, int *count, MPI_Datatype *type)
{
    *count = how % 6 == 5 ? 2 * number : number;
    *type = how % 6 == 5 ? MPI_INT : pairs[how % 6];
}

static char *space(size_t bytes)
{
    char *at = malloc(bytes + 1);
    size_t k;

    for (k = 0; k < bytes; k++)
        at[k] = (char)(k * 7 + (size_t)me * 13);
    return at;
}

static void differ(const char *what, MPI_Comm comm)
{
    int size;

    MPI_Comm_size(comm, &size);
    wrong++;
    printf("rank %d: %s differs on %d ranks\n", me, what, size);
    fflush(stdout);
}

#define BOTH(arguments, name) \
    (profiling ? PMPI_##name arguments : MPI_##name arguments)
#if LARGE
#define WITH(arguments, name) \
    (large ? (profiling ? PMPI_##name##_c arguments : MPI_##name##_c arguments) : BOTH(arguments, name))
#else
#define WITH(arguments, name) BOTH(arguments, name)
#endif

static void one_call(MPI_Comm comm, MPI_Op sum, MPI_Op last)
{
    const char *names[] = {"Allgather", "Alltoall", "Bcast", "Gather", "Scatter", "Allreduce", "Reduce",
                           "Reduce_scatter_block", "Reduce_scatter"};
    int size, rank, function = (int)draw(FUNCTIONS), number = (int)draw(4) * (int)draw(MOST / 4), root, in_place, large;
    int kind = (int)draw(8), mixed = (int)draw(2), counts[64], count, send_count, recv_count, profiling, k;
    unsigned how = draw(6), other = draw(6);
    MPI_Datatype type, send_type, recv_type;
    MPI_Op op;
    char *send[2], *recv[2];
    size_t bytes;
#if LARGE
    MPI_Count many[64];
#endif

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    root = draw(3) ? 0 : (int)draw((unsigned)size);
    in_place = draw(3) == 0;
    large = LARGE && draw(2);
    (void)large;
    if (mixed) { /* types that mean the same */
        how = (how + (unsigned)rank) % 6;
        other = (other + 5 * (unsigned)rank) % 6;
    }
    describe(number, how, &send_count, &send_type);
    describe(number, other, &recv_count, &recv_type);
    /* reductions: everybody the same */
    count = number;
    type = kind < 3 ? MPI_INT : kind == 3 ? MPI_2INT : kind == 5 ? pairs[2] : kind == 6 ? MPI_BYTE : MPI_LONG;
    op = kind == 0 ? MPI_SUM : kind == 1 ? MPI_MAX : kind == 2 ? MPI_BXOR : kind == 3 ? MPI_MINLOC : kind == 4 ? MPI_MIN
         : kind == 5 ? sum : kind == 6 ? MPI_BOR : MPI_SUM;
    if (kind == 2 && draw(2)) {
        type = MPI_INT;
        op = last;
    }
    bytes = (size_t)(number + 1) * 16 * (size_t)size;
    for (k = 0; k < size; k++) {
        counts[k] = count + (kind == 7 && k == 0);
#if LARGE
        many[k] = counts[k];
#endif
    }
    for (profiling = 0; profiling < 2; profiling++) {
        void *from = send[profiling] = space(bytes + 64), *to = recv[profiling] = space(bytes + 64);

        if (in_place && function != 2 && function != 4 && (rank == root || (function != 3 && function != 6)))
            from = MPI_IN_PLACE;
        if (in_place && function == 4 && rank == root)
            to = MPI_IN_PLACE;
        switch (function) {
        case 0: WITH((from, send_count, send_type, to, recv_count, recv_type, comm), Allgather); break;
        case 1: WITH((from, send_count, send_type, to, recv_count, recv_type, comm), Alltoall); break;
        case 2: WITH((to, recv_count, recv_type, root, comm), Bcast); break;
        case 3: WITH((from, send_count, send_type, to, recv_count, recv_type, root, comm), Gather); break;
        case 4: WITH((from, send_count, send_type, to, recv_count, recv_type, root, comm), Scatter); break;
        case 5: WITH((from, to, count, type, op, comm), Allreduce); break;
        case 6: WITH((from, to, count, type, op, root, comm), Reduce); break;
        case 7: WITH((from, to, count, type, op, comm), Reduce_scatter_block); break;
        default:
#if LARGE
            if (large) {
                if (profiling)
                    PMPI_Reduce_scatter_c(from, to, many, type, op, comm);
                else
                    MPI_Reduce_scatter_c(from, to, many, type, op, comm);
                break;
            }
#endif
            BOTH((from, to, counts, type, op, comm), Reduce_scatter);
        }
    }
    calls++;
    /* In place a reduce-scatter leaves what it likes in all blocks but the first. */
    if (function >= 7 && in_place) {
        MPI_Aint lb, extent;

        MPI_Type_get_extent(type, &lb, &extent);
        bytes = (size_t)(extent * counts[rank]);
    }
    /* Elsewhere than at the root nothing is promised of a reduction's buffer. */
    if ((function != 6 || rank == root) && memcmp(recv[0], recv[1], bytes) != 0)
        differ(names[function], comm);
    if (memcmp(send[0], send[1], bytes) != 0)
        differ("what was sent", comm);
    for (k = 0; k < 2; k++)
        free(send[k]), free(recv[k]);
}

static int noncommutative_calls;

static void take_last(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)length, (void)type;
    noncommutative_calls++;
}

/* A program's own attribute: copied with the communicator, and one that communicates when it goes. */
static int on_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    callbacks++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int on_delete(MPI_Comm comm, int key, void *attribute, void *extra)
{
    int one = 1, sum = 0, size;

    (void)key, (void)attribute, (void)extra;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != size)
        differ("a sum of a callback", comm);
    callbacks += 100;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    MPI_Comm comm;
    int key, one = 1, sum, size, flag;
    void *found;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_size(comm, &size);
    MPI_Comm_create_keyval(on_copy, on_delete, &key, NULL);
    MPI_Comm_set_attr(comm, key, &one);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_get_attr(comm, key, &found, &flag);
    if (callbacks != 0 || sum != size || !flag || found != &one)
        differ("an attribute", comm);
    MPI_Comm_free(&comm);
    if (callbacks != 100)
        differ("how often an attribute was deleted", MPI_COMM_WORLD);
    MPI_Comm_free_keyval(&key);
}

/* More communicators one after the other than an MPI could have at once. */
static void many_communicators(int number)
{
    int k, one = 1, sum, size;

    for (k = 0; k < number; k++) {
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_size(comm, &size);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (sum != size)
            differ("a sum", comm);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 40, size, k, total, stop = argc > 3 ? atoi(argv[3]) : 0;
    MPI_Comm world, half, backwards, between = MPI_COMM_NULL, cart;
    MPI_Op sum, last;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = argc > 2 ? (unsigned long long)atoi(argv[2]) : 1;
    make_types();
    MPI_Op_create(add_all, 1, &sum);
    MPI_Op_create(take_last, 0, &last);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &backwards);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &(int){1}, 0, &cart);
    if (size > 1)
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 7, &between);
    for (k = 0; k < rounds; k++) {
        MPI_Comm choices[] = {MPI_COMM_WORLD, world, half, backwards, cart};

        one_call(choices[draw(5)], sum, last);
        if (stop && k == stop && me == 1)
            abort();
    }
    if (between != MPI_COMM_NULL) {
        int mine = me, found[64];

        MPI_Allgather(&mine, 1, MPI_INT, found, 1, MPI_INT, between);
        if (found[0] != 1 - me % 2)
            differ("data of the other group", MPI_COMM_WORLD);
        MPI_Comm_free(&between);
    }
    attributes();
    many_communicators(rounds);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&half);
    MPI_Comm_free(&backwards);
    PMPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0)
        printf("calls %d\nwrong %d\n", calls, total);
    MPI_Op_free(&sum);
    MPI_Op_free(&last);
    for (k = 0; k < 5; k++)
        MPI_Type_free(&pairs[k]);
    MPI_Finalize();
    return total != 0;
}
