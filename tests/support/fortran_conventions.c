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

static int wrong, a[8], b[8];
#define EXPECT(value) do { if ((value) != 1) { wrong++; fprintf(stderr, "line %d\n", __LINE__); } } while (0)

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
    k = own_calls();
    mpi_reduce_scatter_(a, b, uneven, &type, &sum, &comm, &e); /* the MPI's own serves it */
    EXPECT(b[0] == 4);
    pmpi_allreduce_(a, b, &one, &type, &sum, &comm, &e);
    EXPECT(b[0] == 4 && own_calls() > k + 2);
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
