/* MPICH's functions of mpi_f08 without buffers, as a compiler of Fortran would call them; the MPI of a wheel has none.
 *
 * With -DLIBRARY: such functions, which call PMPI_ names. Without: a program that calls them, on four ranks.
 */

#include <mpi.h>
#include <stdio.h>

#ifdef LIBRARY
#define F08(name, parameters, call) \
    void mpi_##name##_f08_ parameters; \
    void mpi_##name##_f08_ parameters { *error = call; }
#else
#define F08(name, parameters, call) void mpi_##name##_f08_ parameters;
#endif

F08(init, (int *error), PMPI_Init(NULL, NULL))
F08(init_thread, (int *required, int *provided, int *error), PMPI_Init_thread(NULL, NULL, *required, provided))
F08(finalize, (int *error), PMPI_Finalize())
F08(comm_dup, (MPI_Comm *comm, MPI_Comm *made, int *error), PMPI_Comm_dup(*comm, made))
F08(comm_free, (MPI_Comm *comm, int *error), PMPI_Comm_free(comm))
F08(type_free, (MPI_Datatype *type, int *error), PMPI_Type_free(type))
F08(start, (MPI_Request *request, int *error), PMPI_Start(request))
F08(startall, (int *number, MPI_Request *requests, int *error), PMPI_Startall(*number, requests))
F08(request_free, (MPI_Request *request, int *error), PMPI_Request_free(request))
F08(cancel, (MPI_Request *request, int *error), PMPI_Cancel(request))

#ifndef LIBRARY
int main(void)
{
    MPI_Comm world, copy;
    MPI_Datatype pair;
    MPI_Request requests[2];
    int rank, error = -1, wrong = 0, two = 2, in[2][2], out[2][2], k, j;

    mpi_init_f08_(NULL); /* the error is optional */
    world = MPI_COMM_WORLD;
    mpi_comm_dup_f08_(&world, &copy, &error);
    MPI_Comm_rank(copy, &rank);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Allreduce_init(in[0], out[0], 2, MPI_INT, MPI_SUM, copy, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(out[1], 1, pair, 0, copy, MPI_INFO_NULL, &requests[1]);
    mpi_type_free_f08_(&pair, &error);
    wrong += error != MPI_SUCCESS || pair != MPI_DATATYPE_NULL;
    for (k = 1; k < 4; k++) {
        for (j = 0; j < 2; j++)
            in[0][j] = rank + j + k, out[0][j] = -1, out[1][j] = rank + k;
        if (k == 1)
            mpi_startall_f08_(&two, requests, &error);
        for (j = 0; j < 2 && k > 1; j++)
            mpi_start_f08_(&requests[j], NULL);
        mpi_cancel_f08_(&requests[0], &error); /* does nothing */
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        wrong += error != MPI_SUCCESS || out[0][0] != 6 + 4 * k || out[0][1] != 10 + 4 * k || out[1][0] != k || out[1][1] != k;
    }
    for (k = 0; k < 2; k++) {
        mpi_request_free_f08_(&requests[k], &error);
        wrong += error != MPI_SUCCESS || requests[k] != MPI_REQUEST_NULL;
    }
    mpi_comm_free_f08_(&copy, &error);
    printf("wrong %d\n", wrong);
    mpi_finalize_f08_(NULL);
    return 0;
}
#endif
