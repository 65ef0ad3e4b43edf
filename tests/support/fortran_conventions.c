/* Open MPI's Fortran functions as a compiler of Fortran would call them; the MPI of a wheel has none.
 *
 * With -DLIBRARY: such functions, which call PMPI_ names. Without: a program that calls them, and compares.
 */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef MPI_Fint *N;

#ifdef LIBRARY
int mpi_fortran_in_place_, mpi_fortran_bottom_;
static int own; /* calls that came here */

static void *at(void *buffer)
{
    own++;
    return buffer == &mpi_fortran_in_place_ ? MPI_IN_PLACE : buffer == &mpi_fortran_bottom_ ? MPI_BOTTOM : buffer;
}

int own_calls(void) { return own; }

#define BOTH(name, parameters, call) \
    void pmpi_##name##_ parameters { int code = call; if (e != NULL) *e = code; } \
    void mpi_##name##_ parameters __attribute__((alias("pmpi_" #name "_"))); \
    void mpi_##name##_f08_ parameters __attribute__((alias("pmpi_" #name "_")));
#define C(n) PMPI_Comm_f2c(*n)
#define T(n) PMPI_Type_f2c(*n)
#define O(n) PMPI_Op_f2c(*n)

static int freed(N c)
{
    MPI_Comm comm = C(c);
    int code = PMPI_Comm_free(&comm);
    *c = PMPI_Comm_c2f(comm);
    return code;
}

BOTH(init, (N e), PMPI_Init(NULL, NULL))
BOTH(init_thread, (N r, N p, N e), PMPI_Init_thread(NULL, NULL, *r, p))
BOTH(finalize, (N e), PMPI_Finalize())
BOTH(comm_free, (N c, N e), freed(c))
BOTH(allreduce, (void *s, void *r, N n, N t, N o, N c, N e), PMPI_Allreduce(at(s), at(r), *n, T(t), O(o), C(c)))
BOTH(reduce, (void *s, void *r, N n, N t, N o, N root, N c, N e),
     PMPI_Reduce(at(s), at(r), *n, T(t), O(o), *root, C(c)))
BOTH(reduce_scatter, (void *s, void *r, N n, N t, N o, N c, N e), PMPI_Reduce_scatter(at(s), at(r), n, T(t), O(o), C(c)))
BOTH(reduce_scatter_block, (void *s, void *r, N n, N t, N o, N c, N e),
     PMPI_Reduce_scatter_block(at(s), at(r), *n, T(t), O(o), C(c)))
BOTH(bcast, (void *b, N n, N t, N root, N c, N e), PMPI_Bcast(at(b), *n, T(t), *root, C(c)))
BOTH(allgather, (void *s, N n, N t, void *r, N m, N u, N c, N e), PMPI_Allgather(at(s), *n, T(t), at(r), *m, T(u), C(c)))
BOTH(alltoall, (void *s, N n, N t, void *r, N m, N u, N c, N e), PMPI_Alltoall(at(s), *n, T(t), at(r), *m, T(u), C(c)))
BOTH(gather, (void *s, N n, N t, void *r, N m, N u, N root, N c, N e),
     PMPI_Gather(at(s), *n, T(t), at(r), *m, T(u), *root, C(c)))
BOTH(scatter, (void *s, N n, N t, void *r, N m, N u, N root, N c, N e),
     PMPI_Scatter(at(s), *n, T(t), at(r), *m, T(u), *root, C(c)))
BOTH(allgatherv, (void *s, N n, N t, void *r, N m, N p, N u, N c, N e),
     PMPI_Allgatherv(at(s), *n, T(t), at(r), m, p, T(u), C(c)))
BOTH(alltoallv, (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N e),
     PMPI_Alltoallv(at(s), n, o, T(t), at(r), m, p, T(u), C(c)))
BOTH(gatherv, (void *s, N n, N t, void *r, N m, N p, N u, N root, N c, N e),
     PMPI_Gatherv(at(s), *n, T(t), at(r), m, p, T(u), *root, C(c)))
BOTH(scatterv, (void *s, N n, N o, N t, void *r, N m, N u, N root, N c, N e),
     PMPI_Scatterv(at(s), n, o, T(t), at(r), *m, T(u), *root, C(c)))
BOTH(neighbor_allgather, (void *s, N n, N t, void *r, N m, N u, N c, N e),
     PMPI_Neighbor_allgather(at(s), *n, T(t), at(r), *m, T(u), C(c)))
BOTH(neighbor_allgatherv, (void *s, N n, N t, void *r, N m, N p, N u, N c, N e),
     PMPI_Neighbor_allgatherv(at(s), *n, T(t), at(r), m, p, T(u), C(c)))
BOTH(neighbor_alltoall, (void *s, N n, N t, void *r, N m, N u, N c, N e),
     PMPI_Neighbor_alltoall(at(s), *n, T(t), at(r), *m, T(u), C(c)))
BOTH(neighbor_alltoallv, (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N e),
     PMPI_Neighbor_alltoallv(at(s), n, o, T(t), at(r), m, p, T(u), C(c)))

/* Handles of a list of types, which calls under way need; no call has more blocks. */
static MPI_Datatype *types_of(N numbers)
{
    MPI_Datatype *types = malloc(4 * sizeof *types);

    for (int k = 0; k < 4 && types != NULL; k++)
        types[k] = PMPI_Type_f2c(numbers[k]);
    return types;
}

#define W(n) types_of(n)
BOTH(alltoallw, (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N e),
     PMPI_Alltoallw(at(s), n, o, W(t), at(r), m, p, W(u), C(c)))
BOTH(neighbor_alltoallw, (void *s, N n, MPI_Aint *o, N t, void *r, N m, MPI_Aint *p, N u, N c, N e),
     PMPI_Neighbor_alltoallw(at(s), n, o, W(t), at(r), m, p, W(u), C(c)))

/* Nonblocking and persistent forms. */
#define BEGUN(name, parameters, call) \
    void pmpi_##name##_ parameters { MPI_Request h; int code = call; *q = PMPI_Request_c2f(h); if (e != NULL) *e = code; } \
    void mpi_##name##_ parameters __attribute__((alias("pmpi_" #name "_"))); \
    void mpi_##name##_f08_ parameters __attribute__((alias("pmpi_" #name "_")));
#define LATER(name, Name, begun, repeated, ...) \
    BEGUN(i##name, begun, PMPI_I##name(__VA_ARGS__, &h)) \
    BEGUN(name##_init, repeated, PMPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &h))
LATER(allreduce, Allreduce, (void *s, void *r, N n, N t, N o, N c, N q, N e), (void *s, void *r, N n, N t, N o, N c, N i, N q, N e),
      at(s), at(r), *n, T(t), O(o), C(c))
LATER(bcast, Bcast, (void *b, N n, N t, N root, N c, N q, N e), (void *b, N n, N t, N root, N c, N i, N q, N e),
      at(b), *n, T(t), *root, C(c))
LATER(reduce, Reduce, (void *s, void *r, N n, N t, N o, N root, N c, N q, N e), (void *s, void *r, N n, N t, N o, N root, N c, N i, N q, N e),
      at(s), at(r), *n, T(t), O(o), *root, C(c))
LATER(reduce_scatter_block, Reduce_scatter_block, (void *s, void *r, N n, N t, N o, N c, N q, N e), (void *s, void *r, N n, N t, N o, N c, N i, N q, N e),
      at(s), at(r), *n, T(t), O(o), C(c))
LATER(reduce_scatter, Reduce_scatter, (void *s, void *r, N n, N t, N o, N c, N q, N e), (void *s, void *r, N n, N t, N o, N c, N i, N q, N e),
      at(s), at(r), n, T(t), O(o), C(c))
LATER(allgather, Allgather, (void *s, N n, N t, void *r, N m, N u, N c, N q, N e), (void *s, N n, N t, void *r, N m, N u, N c, N i, N q, N e),
      at(s), *n, T(t), at(r), *m, T(u), C(c))
LATER(alltoall, Alltoall, (void *s, N n, N t, void *r, N m, N u, N c, N q, N e), (void *s, N n, N t, void *r, N m, N u, N c, N i, N q, N e),
      at(s), *n, T(t), at(r), *m, T(u), C(c))
LATER(gather, Gather, (void *s, N n, N t, void *r, N m, N u, N root, N c, N q, N e), (void *s, N n, N t, void *r, N m, N u, N root, N c, N i, N q, N e),
      at(s), *n, T(t), at(r), *m, T(u), *root, C(c))
LATER(scatter, Scatter, (void *s, N n, N t, void *r, N m, N u, N root, N c, N q, N e), (void *s, N n, N t, void *r, N m, N u, N root, N c, N i, N q, N e),
      at(s), *n, T(t), at(r), *m, T(u), *root, C(c))
LATER(allgatherv, Allgatherv, (void *s, N n, N t, void *r, N m, N p, N u, N c, N q, N e), (void *s, N n, N t, void *r, N m, N p, N u, N c, N i, N q, N e),
      at(s), *n, T(t), at(r), m, p, T(u), C(c))
LATER(alltoallv, Alltoallv, (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N q, N e), (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N i, N q, N e),
      at(s), n, o, T(t), at(r), m, p, T(u), C(c))
LATER(alltoallw, Alltoallw, (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N q, N e), (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N i, N q, N e),
      at(s), n, o, W(t), at(r), m, p, W(u), C(c))
LATER(gatherv, Gatherv, (void *s, N n, N t, void *r, N m, N p, N u, N root, N c, N q, N e), (void *s, N n, N t, void *r, N m, N p, N u, N root, N c, N i, N q, N e),
      at(s), *n, T(t), at(r), m, p, T(u), *root, C(c))
LATER(scatterv, Scatterv, (void *s, N n, N o, N t, void *r, N m, N u, N root, N c, N q, N e), (void *s, N n, N o, N t, void *r, N m, N u, N root, N c, N i, N q, N e),
      at(s), n, o, T(t), at(r), *m, T(u), *root, C(c))
LATER(neighbor_allgather, Neighbor_allgather, (void *s, N n, N t, void *r, N m, N u, N c, N q, N e), (void *s, N n, N t, void *r, N m, N u, N c, N i, N q, N e),
      at(s), *n, T(t), at(r), *m, T(u), C(c))
LATER(neighbor_allgatherv, Neighbor_allgatherv, (void *s, N n, N t, void *r, N m, N p, N u, N c, N q, N e), (void *s, N n, N t, void *r, N m, N p, N u, N c, N i, N q, N e),
      at(s), *n, T(t), at(r), m, p, T(u), C(c))
LATER(neighbor_alltoall, Neighbor_alltoall, (void *s, N n, N t, void *r, N m, N u, N c, N q, N e), (void *s, N n, N t, void *r, N m, N u, N c, N i, N q, N e),
      at(s), *n, T(t), at(r), *m, T(u), C(c))
LATER(neighbor_alltoallv, Neighbor_alltoallv, (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N q, N e), (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N i, N q, N e),
      at(s), n, o, T(t), at(r), m, p, T(u), C(c))
LATER(neighbor_alltoallw, Neighbor_alltoallw, (void *s, N n, MPI_Aint *o, N t, void *r, N m, MPI_Aint *p, N u, N c, N q, N e), (void *s, N n, MPI_Aint *o, N t, void *r, N m, MPI_Aint *p, N u, N c, N i, N q, N e),
      at(s), n, o, W(t), at(r), m, p, W(u), C(c))

static int freed_request(N q)
{
    MPI_Request request = PMPI_Request_f2c(*q);
    int code = PMPI_Request_free(&request);

    *q = PMPI_Request_c2f(request);
    return code;
}

static int started(N n, N q)
{
    int code = MPI_SUCCESS;

    for (int k = 0; k < *n; k++) {
        MPI_Request request = PMPI_Request_f2c(q[k]);
        code |= PMPI_Start(&request);
        q[k] = PMPI_Request_c2f(request);
    }
    return code;
}

BOTH(start, (N q, N e), started(&(MPI_Fint){1}, q))
BOTH(startall, (N n, N q, N e), started(n, q))
BOTH(request_free, (N q, N e), freed_request(q))
BOTH(cancel, (N q, N e), q == NULL ? MPI_SUCCESS : MPI_ERR_REQUEST)

static int made(N n, MPI_Comm comm) { *n = PMPI_Comm_c2f(comm); return MPI_SUCCESS; }

static int copied(N c, N n)
{
    MPI_Comm comm;

    PMPI_Comm_dup(C(c), &comm);
    return made(n, comm);
}

static int arranged(N c, N d, N s, N p, N o, N n)
{
    MPI_Comm comm;

    PMPI_Cart_create(C(c), *d, s, p, *o, &comm);
    return made(n, comm);
}

static int freed_type(N t)
{
    MPI_Datatype type = T(t);
    int code = PMPI_Type_free(&type);

    *t = PMPI_Type_c2f(type);
    return code;
}

BOTH(comm_dup, (N c, N n, N e), copied(c, n))
BOTH(cart_create, (N c, N d, N s, N p, N o, N n, N e), arranged(c, d, s, p, o, n))
BOTH(type_free, (N t, N e), freed_type(t))
#else
extern int mpi_fortran_in_place_, mpi_fortran_bottom_;
int own_calls(void);
#define BOTH(name, parameters) void mpi_##name##_ parameters; void mpi_##name##_f08_ parameters; \
    void pmpi_##name##_ parameters;
BOTH(init, (N))
BOTH(finalize, (N))
BOTH(comm_free, (N, N))
BOTH(allreduce, (void *, void *, N, N, N, N, N))
BOTH(reduce, (void *, void *, N, N, N, N, N, N))
BOTH(reduce_scatter, (void *, void *, N, N, N, N, N))
BOTH(reduce_scatter_block, (void *, void *, N, N, N, N, N))
BOTH(bcast, (void *, N, N, N, N, N))
BOTH(allgather, (void *, N, N, void *, N, N, N, N))
BOTH(alltoall, (void *, N, N, void *, N, N, N, N))
BOTH(gather, (void *, N, N, void *, N, N, N, N, N))
BOTH(scatter, (void *, N, N, void *, N, N, N, N, N))
BOTH(allgatherv, (void *, N, N, void *, N, N, N, N, N))
BOTH(alltoallv, (void *, N, N, N, void *, N, N, N, N, N))
BOTH(gatherv, (void *, N, N, void *, N, N, N, N, N, N))
BOTH(scatterv, (void *, N, N, N, void *, N, N, N, N, N))
BOTH(neighbor_allgather, (void *, N, N, void *, N, N, N, N))
BOTH(neighbor_allgatherv, (void *, N, N, void *, N, N, N, N, N))
BOTH(neighbor_alltoall, (void *, N, N, void *, N, N, N, N))
BOTH(neighbor_alltoallv, (void *, N, N, N, void *, N, N, N, N, N))
BOTH(comm_dup, (N, N, N))
BOTH(type_free, (N, N))
BOTH(alltoallw, (void *, N, N, N, void *, N, N, N, N, N))
BOTH(neighbor_alltoallw, (void *, N, MPI_Aint *, N, void *, N, MPI_Aint *, N, N, N))
BOTH(start, (N, N))
BOTH(startall, (N, N, N))
BOTH(cart_create, (N, N, N, N, N, N, N))
BOTH(request_free, (N, N))
BOTH(cancel, (N, N))
#define LATER(name, ...) BOTH(i##name, (__VA_ARGS__, N, N)) BOTH(name##_init, (__VA_ARGS__, N, N, N))
LATER(allreduce, void *, void *, N, N, N, N)
LATER(bcast, void *, N, N, N, N)
LATER(reduce, void *, void *, N, N, N, N, N)
LATER(reduce_scatter_block, void *, void *, N, N, N, N)
LATER(reduce_scatter, void *, void *, N, N, N, N)
LATER(allgather, void *, N, N, void *, N, N, N)
LATER(alltoall, void *, N, N, void *, N, N, N)
LATER(gather, void *, N, N, void *, N, N, N, N)
LATER(scatter, void *, N, N, void *, N, N, N, N)
LATER(allgatherv, void *, N, N, void *, N, N, N, N)
LATER(alltoallv, void *, N, N, N, void *, N, N, N, N)
LATER(alltoallw, void *, N, N, N, void *, N, N, N, N)
LATER(gatherv, void *, N, N, void *, N, N, N, N, N)
LATER(scatterv, void *, N, N, N, void *, N, N, N, N)
LATER(neighbor_allgather, void *, N, N, void *, N, N, N)
LATER(neighbor_allgatherv, void *, N, N, void *, N, N, N, N)
LATER(neighbor_alltoall, void *, N, N, void *, N, N, N)
LATER(neighbor_alltoallv, void *, N, N, N, void *, N, N, N, N)
LATER(neighbor_alltoallw, void *, N, MPI_Aint *, N, void *, N, MPI_Aint *, N, N)

static int wrong, a[8], b[8];
#define EXPECT(value) do { if ((value) != 1) { wrong++; fprintf(stderr, "line %d\n", __LINE__); } } while (0)

/* With a count for each rank: rank r has 1, 3, 2, 2 elements for everybody. */
static void with_counts(int rank, MPI_Fint comm, MPI_Fint type)
{
    MPI_Fint counts[4] = {1, 3, 2, 2}, places[4] = {0, 1, 4, 6}, own[4], at[4] = {0, 0, 0, 0}, root = 0, none = -5, e = 77;
    MPI_Fint types[4], bytes[4], *lost = rank ? &none : NULL;
    int k;

    for (k = 0; k < 4; k++)
        own[k] = counts[rank];
    for (k = 0; k < 8; k++)
        a[k] = 10 * rank, b[k] = -1;
    mpi_allgatherv_(a, &counts[rank], &type, b, counts, places, &type, &comm, &e);
    EXPECT(b[0] == 0 && b[1] == 10 && b[3] == 10 && b[4] == 20 && b[7] == 30 && e == MPI_SUCCESS);
    mpi_allgatherv_f08_(&mpi_fortran_in_place_, &none, &none, b, counts, places, &type, &comm, NULL);
    EXPECT(b[0] == 0 && b[1] == 10 && b[3] == 10 && b[4] == 20 && b[7] == 30);
    for (k = 0; k < 8; k++)
        b[k] = -1;
    mpi_alltoallv_(a, own, at, &type, b, counts, places, &type, &comm, &e);
    EXPECT(b[0] == 0 && b[1] == 10 && b[3] == 10 && b[4] == 20 && b[7] == 30);
    for (k = 0; k < 4; k++)
        types[k] = type, bytes[k] = 4 * places[k];
    b[0] = b[7] = -1;
    mpi_alltoallw_(a, own, at, types, b, counts, bytes, types, &comm, &e);
    EXPECT(b[0] == 0 && b[1] == 10 && b[3] == 10 && b[4] == 20 && b[7] == 30);
    for (k = 0; k < 8; k++)
        b[k] = -1;
    mpi_gatherv_(a, &counts[rank], &type, b, lost ? lost : counts, lost ? lost : places, lost ? lost : &type, &root,
                 &comm, &e);
    EXPECT(rank ? b[7] == -1 : b[1] == 10 && b[3] == 10 && b[4] == 20 && b[7] == 30);
    for (k = 0; k < 8; k++)
        a[k] = rank ? -1 : k, b[k] = -1;
    mpi_scatterv_(a, lost ? lost : counts, lost ? lost : places, lost ? lost : &type, b, &counts[rank], &type, &root,
                  &comm, &e);
    EXPECT(b[0] == places[rank] && b[counts[rank] - 1] == places[rank] + counts[rank] - 1);
}

enum { ALL = 14, NEAR = 5 };
static int s[ALL][8], r[ALL][16];

static void fill(int rank, int base)
{
    int k, j;

    for (k = 0; k < ALL; k++)
        for (j = 0; j < 16; j++)
            s[k][j % 8] = base + 100 * rank + j % 8, r[k][j] = -1;
    r[1][0] = s[1][0];
}

static void wait_for(MPI_Fint *q, int number)
{
    MPI_Request requests[ALL];
    int k;

    for (k = 0; k < number; k++)
        requests[k] = MPI_Request_f2c(q[number - 1 - k]);
    MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
}

static void check(int rank, int base)
{
    int at = (int[]){0, 1, 4, 6}[rank], sum = 600 + 4 * base;

    EXPECT(r[0][0] == sum && r[1][0] == base && r[3][0] == sum + 4 * rank && r[4][0] == sum + 4 * at);
    EXPECT(rank ? 1 : r[2][0] == sum && r[7][3] == base + 300 && r[11][1] == base + 100 && r[11][7] == base + 301);
    EXPECT(r[5][3] == base + 300 && r[6][2] == base + 200 + rank && r[8][0] == base + rank && r[9][3] == base + 102);
    EXPECT(r[9][6] == base + 300 && r[10][2] == base + 101 && r[10][7] == base + 301 && r[12][0] == base + at);
    EXPECT(r[13][0] == base + rank && r[13][2] == base + 200 + rank && r[13][3] == base + 300 + rank);
}

/* A call that is begun, or a persistent one. */
#define CALL(name, request, ...)     (again ? mpi_##name##_init_(__VA_ARGS__, &info, request, &e) : mpi_i##name##_(__VA_ARGS__, request, &e))

/* All at once, each in buffers of its own. The communicator of one and the type of two are freed before they are done. */
static void later(int again, int rank, MPI_Fint comm, MPI_Fint type, MPI_Fint sum)
{
    MPI_Fint q[ALL], one = 1, root = 0, e = 77, counts[4] = {1, 3, 2, 2}, places[4] = {0, 1, 4, 6}, own[4], at[4] = {0, 0, 0, 0};
    MPI_Fint info = MPI_Info_c2f(MPI_INFO_NULL), each, copy, all = ALL, ones[4] = {1, 1, 1, 1}, bytes[4] = {0, 4, 8, 12}, types[4];
    MPI_Datatype alone;
    int k;

    MPI_Type_contiguous(1, MPI_INT, &alone);
    MPI_Type_commit(&alone);
    each = MPI_Type_c2f(alone);
    for (k = 0; k < 4; k++)
        own[k] = counts[rank], types[k] = k % 2 ? each : type;
    mpi_comm_dup_(&comm, &copy, &e);
    fill(rank, 0);
    CALL(allreduce, &q[0], s[0], r[0], &one, &type, &sum, &comm);
    CALL(bcast, &q[1], r[1], &one, &type, &root, &comm);
    CALL(reduce, &q[2], s[2], r[2], &one, &type, &sum, &root, &comm);
    CALL(reduce_scatter_block, &q[3], s[3], r[3], &one, &type, &sum, &comm);
    if (again)
        mpi_reduce_scatter_init_f08_(s[4], r[4], counts, &type, &sum, &comm, &info, &q[4], NULL);
    else
        mpi_ireduce_scatter_f08_(s[4], r[4], counts, &type, &sum, &comm, &q[4], NULL);
    CALL(allgather, &q[5], s[5], &one, &type, r[5], &one, &type, &comm);
    CALL(alltoall, &q[6], s[6], &one, &type, r[6], &one, &type, &comm);
    CALL(gather, &q[7], s[7], &one, &type, r[7], &one, &type, &root, &comm);
    CALL(scatter, &q[8], s[8], &one, &type, r[8], &one, &type, &root, &comm);
    CALL(allgatherv, &q[9], s[9], &counts[rank], &type, r[9], counts, places, &type, &comm);
    CALL(alltoallv, &q[10], s[10], own, at, &type, r[10], counts, places, &type, &comm);
    CALL(gatherv, &q[11], s[11], &counts[rank], &type, r[11], counts, places, &type, &root, &comm);
    CALL(scatterv, &q[12], s[12], counts, places, &each, r[12], &counts[rank], &each, &root, &copy);
    CALL(alltoallw, &q[13], s[13], ones, bytes, types, r[13], ones, bytes, types, &comm);
    EXPECT(e == MPI_SUCCESS);
    if (getenv("KEEP_HANDLES") == NULL) {
        mpi_comm_free_(&copy, &e);
        mpi_type_free_(&each, &e);
        EXPECT(each == MPI_Type_c2f(MPI_DATATYPE_NULL));
    }
    for (k = 0; k < 1 + 2 * again; k++) {
        if (k > 0)
            fill(rank, 1000 * k);
        if (k == 1)
            mpi_startall_(&all, q, &e);
        for (int j = 0; j < ALL && again && k != 1; j++)
            mpi_start_(&q[j], &e);
        wait_for(q, ALL);
        check(rank, 1000 * k);
    }
    for (k = 0; k < ALL && again; k++) {
        mpi_request_free_(&q[k], &e);
        EXPECT(q[k] == MPI_Request_c2f(MPI_REQUEST_NULL));
    }
}

/* The neighbours of a rank on a ring: what is sent to the left is a[1] where there are places. */
static void with_neighbours(int rank, MPI_Fint type)
{
    MPI_Fint one = 1, both[2] = {1, 1}, places[2] = {1, 0}, e = 77, comm, q[NEAR], types[4] = {type, type, type, type}, number = 1;
    MPI_Fint info = MPI_Info_c2f(MPI_INFO_NULL), world = MPI_Comm_c2f(MPI_COMM_WORLD), size = 4, periodic = 1, order = 0;
    MPI_Aint bytes[2] = {4, 0};
    int left = (rank + 3) % 4, right = (rank + 1) % 4, again, k;

    mpi_cart_create_(&world, &number, &size, &periodic, &order, &comm, &e);
    a[0] = rank, a[1] = 10 + rank;
    mpi_neighbor_allgather_(a, &one, &type, b, &one, &type, &comm, &e);
    EXPECT(b[0] == left && b[1] == right && e == MPI_SUCCESS);
    mpi_neighbor_allgatherv_f08_(a, &one, &type, b, both, places, &type, &comm, NULL);
    EXPECT(b[1] == left && b[0] == right);
    mpi_neighbor_alltoall_(a, &one, &type, b, &one, &type, &comm, &e);
    EXPECT(b[0] == 10 + left && b[1] == right);
    mpi_neighbor_alltoallv_(a, both, places, &type, b, both, places, &type, &comm, &e);
    EXPECT(b[1] == left && b[0] == 10 + right);
    b[0] = b[1] = -1;
    mpi_neighbor_alltoallw_(a, both, bytes, types, b, both, bytes, types, &comm, &e);
    EXPECT(b[1] == left && b[0] == 10 + right);
    for (again = 0; again < 2; again++) {
        fill(0, -1);
        CALL(neighbor_allgather, &q[0], a, &one, &type, r[0], &one, &type, &comm);
        CALL(neighbor_allgatherv, &q[1], a, &one, &type, r[1], both, places, &type, &comm);
        CALL(neighbor_alltoall, &q[2], a, &one, &type, r[2], &one, &type, &comm);
        CALL(neighbor_alltoallv, &q[3], a, both, places, &type, r[3], both, places, &type, &comm);
        CALL(neighbor_alltoallw, &q[4], a, both, bytes, types, r[4], both, bytes, types, &comm);
        for (k = 0; k < NEAR && again; k++)
            mpi_start_(&q[k], &e);
        wait_for(q, NEAR);
        EXPECT(r[0][0] == left && r[0][1] == right && r[1][1] == left && r[1][0] == right);
        EXPECT(r[2][0] == 10 + left && r[2][1] == right && r[3][1] == left && r[3][0] == 10 + right);
        EXPECT(r[4][1] == left && r[4][0] == 10 + right && e == MPI_SUCCESS);
        for (k = 0; k < NEAR && again; k++)
            mpi_request_free_(&q[k], &e);
    }
    mpi_comm_free_(&comm, &e);
}

int main(void)
{
    MPI_Fint e = 77, two = 2, one = 1, eight = 8, root = 0, counts[4] = {2, 2, 2, 2}, uneven[4] = {1, 3, 2, 2};
    MPI_Fint comm, type, sum, garbage = 123456, none = -5;
    MPI_Datatype place;
    MPI_Comm copy;
    int rank, k;

    mpi_init_(&e);
    comm = MPI_Comm_c2f(MPI_COMM_WORLD), type = MPI_Type_c2f(MPI_INT), sum = MPI_Op_c2f(MPI_SUM);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (k = 0; k < 8; k++)
        a[k] = rank + k;
    mpi_allreduce_(&mpi_fortran_in_place_, a, &eight, &type, &sum, &comm, &e);
    EXPECT(a[3] == 6 + 12 && e == MPI_SUCCESS);
    mpi_allreduce_f08_(a, b, &eight, &type, &sum, &comm, NULL);
    EXPECT(b[3] == 72);
    b[0] = rank == 0 ? 9 : 0;
    mpi_bcast_(b, &one, &type, &root, &comm, &e);
    EXPECT(b[0] == 9);
    MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){(MPI_Aint)&b[1]}, MPI_INT, &place);
    MPI_Type_commit(&place);
    b[1] = rank == 0 ? 5 : 0;
    {
        MPI_Fint absolute = MPI_Type_c2f(place);
        mpi_bcast_(&mpi_fortran_bottom_, &one, &absolute, &root, &comm, &e);
    }
    EXPECT(b[1] == 5);
    mpi_allgather_(&rank, &one, &type, b, &one, &type, &comm, &e);
    EXPECT(b[0] == 0 && b[3] == 3);
    mpi_allgather_f08_(&mpi_fortran_in_place_, &garbage, &garbage, b, &one, &type, &comm, NULL);
    EXPECT(b[0] == 0 && b[3] == 3);
    mpi_alltoall_(b, &one, &type, a, &one, &type, &comm, &e);
    EXPECT(a[0] == rank && a[3] == rank);
    /* What does not matter on a rank may be anything. */
    mpi_gather_(&rank, &one, &type, a, rank ? &garbage : &one, rank ? &none : &type, &root, &comm, &e);
    EXPECT(rank != 0 || (a[0] == 0 && a[3] == 3));
    mpi_scatter_(a, rank ? &garbage : &one, rank ? &garbage : &type, rank ? (void *)b : &mpi_fortran_in_place_, &one,
                 &type, &root, &comm, &e);
    EXPECT(rank == 0 || b[0] == rank);
    a[0] = 1;
    mpi_reduce_(a, b, &one, &type, &sum, &root, &comm, &e);
    EXPECT(rank != 0 || b[0] == 4);
    for (k = 0; k < 8; k++)
        a[k] = 1;
    mpi_reduce_scatter_block_(a, b, &two, &type, &sum, &comm, &e);
    EXPECT(b[0] == 4 && b[1] == 4);
    mpi_reduce_scatter_(a, b, counts, &type, &sum, &comm, &e);
    EXPECT(b[0] == 4 && b[1] == 4);
    for (k = 0; k < 8; k++)
        a[k] = rank + k;
    mpi_reduce_scatter_(a, b, uneven, &type, &sum, &comm, &e);
    EXPECT(b[0] == 6 + 4 * (rank ? 2 * rank - (rank == 1) : 0) && b[uneven[rank] - 1] == b[0] + 4 * (uneven[rank] - 1));
    with_counts(rank, comm, type);
    with_neighbours(rank, type);
    later(0, rank, comm, type, sum);
    later(1, rank, comm, type, sum);
    a[0] = 1;
    k = own_calls();
    pmpi_allreduce_(a, b, &one, &type, &sum, &comm, &e);
    EXPECT(b[0] == 4 && own_calls() == k + 2);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    comm = MPI_Comm_c2f(copy);
    mpi_allreduce_(a, b, &one, &type, &sum, &comm, &e);
    mpi_comm_free_(&comm, &e);
    EXPECT(comm == MPI_Comm_c2f(MPI_COMM_NULL) && b[0] == 4);
    printf("wrong %d own %d\n", wrong, own_calls());
    mpi_finalize_f08_(NULL);
    return 0; /* the line above tells: Open MPI's launcher may wait for ever when several ranks end with an error */
}
#endif
