/* Each collective once for every size in bytes of the whole vector, given as arguments. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i++) {
        int size = atoi(argv[i]), part = size / ranks;
        char *from = calloc(size + 1, 1), *to = calloc(size + 1, 1);
        MPI_Allreduce(from, to, size, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
        MPI_Allgather(from, part, MPI_BYTE, to, part, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Alltoall(from, part, MPI_BYTE, to, part, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Bcast(from, size, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Reduce(from, to, size, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD);
        free(from);
        free(to);
    }
    MPI_Finalize();
    return 0;
}
