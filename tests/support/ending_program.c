/* Three sums, then an end of rank 1 by the word that is given: abort, crash, kill, exit (without MPI_Finalize), or
 * early (before any sum), none (no sum at all), no-init (MPI unused), past (sums by PMPI_ names). */

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int past = strcmp(how, "past") == 0, rank, k, one = 1, sum = 0;

    if (strcmp(how, "no-init") == 0)
        return MPI_Initialized(&k) != MPI_SUCCESS;
    past ? PMPI_Init(&argc, &argv) : MPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(how, "early") == 0)
        raise(SIGKILL);
    for (k = 0; k < 3 && strcmp(how, "none") != 0; k++)
        past ? PMPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)
             : MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 1 && strcmp(how, "crash") == 0)
        raise(SIGSEGV);
    if (rank == 1 && strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (rank == 1 && strcmp(how, "exit") == 0)
        exit(3);
    PMPI_Barrier(MPI_COMM_WORLD);
    return past ? PMPI_Finalize() : MPI_Finalize();
}
