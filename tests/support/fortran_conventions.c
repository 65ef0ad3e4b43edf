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

#define BEGUN(name, parameters, call) \
    void pmpi_##name##_ parameters { MPI_Request h; int code = call; *q = PMPI_Request_c2f(h); if (e != NULL) *e = code; } \
    void mpi_##name##_ parameters __attribute__((alias("pmpi_" #name "_"))); \
    void mpi_##name##_f08_ parameters __attribute__((alias("pmpi_" #name "_")));
BEGUN(iallreduce, (void *s, void *r, N n, N t, N o, N c, N q, N e),
      PMPI_Iallreduce(at(s), at(r), *n, T(t), O(o), C(c), &h))
BEGUN(ibcast, (void *b, N n, N t, N root, N c, N q, N e),
      PMPI_Ibcast(at(b), *n, T(t), *root, C(c), &h))
BEGUN(ireduce, (void *s, void *r, N n, N t, N o, N root, N c, N q, N e),
      PMPI_Ireduce(at(s), at(r), *n, T(t), O(o), *root, C(c), &h))
BEGUN(ireduce_scatter_block, (void *s, void *r, N n, N t, N o, N c, N q, N e),
      PMPI_Ireduce_scatter_block(at(s), at(r), *n, T(t), O(o), C(c), &h))
BEGUN(ireduce_scatter, (void *s, void *r, N n, N t, N o, N c, N q, N e),
      PMPI_Ireduce_scatter(at(s), at(r), n, T(t), O(o), C(c), &h))
BEGUN(iallgather, (void *s, N n, N t, void *r, N m, N u, N c, N q, N e),
      PMPI_Iallgather(at(s), *n, T(t), at(r), *m, T(u), C(c), &h))
BEGUN(ialltoall, (void *s, N n, N t, void *r, N m, N u, N c, N q, N e),
      PMPI_Ialltoall(at(s), *n, T(t), at(r), *m, T(u), C(c), &h))
BEGUN(igather, (void *s, N n, N t, void *r, N m, N u, N root, N c, N q, N e),
      PMPI_Igather(at(s), *n, T(t), at(r), *m, T(u), *root, C(c), &h))
BEGUN(iscatter, (void *s, N n, N t, void *r, N m, N u, N root, N c, N q, N e),
      PMPI_Iscatter(at(s), *n, T(t), at(r), *m, T(u), *root, C(c), &h))
BEGUN(iallgatherv, (void *s, N n, N t, void *r, N m, N p, N u, N c, N q, N e),
      PMPI_Iallgatherv(at(s), *n, T(t), at(r), m, p, T(u), C(c), &h))
BEGUN(ialltoallv, (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N q, N e),
      PMPI_Ialltoallv(at(s), n, o, T(t), at(r), m, p, T(u), C(c), &h))
BEGUN(igatherv, (void *s, N n, N t, void *r, N m, N p, N u, N root, N c, N q, N e),
      PMPI_Igatherv(at(s), *n, T(t), at(r), m, p, T(u), *root, C(c), &h))
BEGUN(iscatterv, (void *s, N n, N o, N t, void *r, N m, N u, N root, N c, N q, N e),
      PMPI_Iscatterv(at(s), n, o, T(t), at(r), *m, T(u), *root, C(c), &h))
BEGUN(ineighbor_alltoallv, (void *s, N n, N o, N t, void *r, N m, N p, N u, N c, N q, N e),
      PMPI_Ineighbor_alltoallv(at(s), n, o, T(t), at(r), m, p, T(u), C(c), &h))

static int made(N n, MPI_Comm comm) { *n = PMPI_Comm_c2f(comm); return MPI_SUCCESS; }

static int copied(N c, N n)
{
    MPI_Comm comm;

    PMPI_Comm_dup(C(c), &comm);
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
BOTH(iallreduce, (void *, void *, N, N, N, N, N, N))
BOTH(ibcast, (void *, N, N, N, N, N, N))
BOTH(ireduce, (void *, void *, N, N, N, N, N, N, N))
BOTH(ireduce_scatter_block, (void *, void *, N, N, N, N, N, N))
BOTH(ireduce_scatter, (void *, void *, N, N, N, N, N, N))
BOTH(iallgather, (void *, N, N, void *, N, N, N, N, N))
BOTH(ialltoall, (void *, N, N, void *, N, N, N, N, N))
BOTH(igather, (void *, N, N, void *, N, N, N, N, N, N))
BOTH(iscatter, (void *, N, N, void *, N, N, N, N, N, N))
BOTH(iallgatherv, (void *, N, N, void *, N, N, N, N, N, N))
BOTH(ialltoallv, (void *, N, N, N, void *, N, N, N, N, N, N))
BOTH(igatherv, (void *, N, N, void *, N, N, N, N, N, N, N))
BOTH(iscatterv, (void *, N, N, N, void *, N, N, N, N, N, N))
BOTH(ineighbor_alltoallv, (void *, N, N, N, void *, N, N, N, N, N, N))

static int wrong, a[8], b[8];
#define EXPECT(value) do { if ((value) != 1) { wrong++; fprintf(stderr, "line %d\n", __LINE__); } } while (0)

/* With a count for each rank: rank r has 1, 3, 2, 2 elements for everybody. */
static void with_counts(int rank, MPI_Fint comm, MPI_Fint type)
{
    MPI_Fint counts[4] = {1, 3, 2, 2}, places[4] = {0, 1, 4, 6}, own[4], at[4] = {0, 0, 0, 0}, root = 0, none = -5, e = 77;
    MPI_Fint *lost = rank ? &none : NULL;
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

/* All at once, each in buffers of its own; the last one's type and communicator are freed before they are done. */
static void begun(int rank, MPI_Fint comm, MPI_Fint type, MPI_Fint sum)
{
    static int s[14][8], r[14][16];
    MPI_Fint q[14], one = 1, root = 0, e = 77, counts[4] = {1, 3, 2, 2}, places[4] = {0, 1, 4, 6}, own[4], at[4] = {0, 0, 0, 0};
    MPI_Fint each = MPI_Type_c2f(MPI_INT), copy;
    MPI_Datatype pair;
    MPI_Request requests[13];
    int k, j;

    for (k = 0; k < 14; k++)
        for (j = 0; j < 16; j++)
            s[k][j % 8] = 100 * rank + j % 8, r[k][j] = -1;
    for (k = 0; k < 4; k++)
        own[k] = counts[rank];
    MPI_Type_contiguous(1, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    each = MPI_Type_c2f(pair);
    mpi_comm_dup_(&comm, &copy, &e);
    r[1][0] = s[1][0];
    mpi_iallreduce_(s[0], r[0], &one, &type, &sum, &comm, &q[0], &e);
    mpi_ibcast_(r[1], &one, &type, &root, &comm, &q[1], &e);
    mpi_ireduce_(s[2], r[2], &one, &type, &sum, &root, &comm, &q[2], &e);
    mpi_ireduce_scatter_block_(s[3], r[3], &one, &type, &sum, &comm, &q[3], &e);
    mpi_ireduce_scatter_f08_(s[4], r[4], counts, &type, &sum, &comm, &q[4], NULL);
    mpi_iallgather_(s[5], &one, &type, r[5], &one, &type, &comm, &q[5], &e);
    mpi_ialltoall_(s[6], &one, &type, r[6], &one, &type, &comm, &q[6], &e);
    mpi_igather_(s[7], &one, &type, r[7], &one, &type, &root, &comm, &q[7], &e);
    mpi_iscatter_(s[8], &one, &type, r[8], &one, &type, &root, &comm, &q[8], &e);
    mpi_iallgatherv_(s[9], &counts[rank], &type, r[9], counts, places, &type, &comm, &q[9], &e);
    mpi_ialltoallv_(s[10], own, at, &type, r[10], counts, places, &type, &comm, &q[10], &e);
    mpi_igatherv_(s[11], &counts[rank], &type, r[11], counts, places, &type, &root, &comm, &q[11], &e);
    mpi_iscatterv_(s[12], counts, places, &each, r[12], &counts[rank], &each, &root, &copy, &q[12], &e);
    EXPECT(e == MPI_SUCCESS);
    mpi_comm_free_(&copy, &e);
    if (getenv("KEEP_HANDLES") == NULL) {
        mpi_type_free_(&each, &e);
        EXPECT(each == MPI_Type_c2f(MPI_DATATYPE_NULL));
    }
    for (k = 0; k < 13; k++)
        requests[k] = MPI_Request_f2c(q[12 - k]);
    MPI_Waitall(13, requests, MPI_STATUSES_IGNORE);
    EXPECT(r[0][0] == 600 && r[1][0] == 0 && r[3][0] == 600 + 4 * rank && r[4][0] == 600 + 4 * places[rank]);
    EXPECT(rank ? 1 : r[2][0] == 600 && r[7][3] == 300 && r[11][1] == 100 && r[11][7] == 301);
    EXPECT(r[5][3] == 300 && r[6][2] == 200 + rank && r[8][0] == rank && r[9][3] == 102 && r[9][6] == 300);
    EXPECT(r[10][2] == 101 && r[10][7] == 301 && r[12][0] == places[rank]);
}

static void with_neighbours(int rank, MPI_Fint type)
{
    MPI_Fint one = 1, both[2] = {1, 1}, places[2] = {1, 0}, e = 77, comm;
    MPI_Comm ring;
    MPI_Request request;
    int left = (rank + 3) % 4, right = (rank + 1) % 4, size = 4, periodic = 1;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    comm = MPI_Comm_c2f(ring);
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
    mpi_ineighbor_alltoallv_(a, both, places, &type, b, both, places, &type, &comm, &one, &e);
    request = MPI_Request_f2c(one);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(b[1] == left && b[0] == 10 + right);
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
    begun(rank, comm, type, sum);
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
