/* A program that knows nothing of collc: MPI_Bcast, MPI_Reduce, MPI_Gather, MPI_Scatter from every root. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

static int rank, ranks, wrong;

static void from_root(int root, int count, int *a, int *b)
{
    int i;

    for (i = 0; i < count; i++)
        a[i] = rank == root ? root * 100 + i : -1;
    MPI_Bcast(a, count, MPI_INT, root, MPI_COMM_WORLD);
    for (i = 0; i < count; i++)
        wrong += a[i] != root * 100 + i;
    for (i = 0; i < count * ranks; i++)
        a[i] = rank == root ? i + root : -9;
    MPI_Scatter(a, count, MPI_INT, rank == root && count % 2 ? MPI_IN_PLACE : b, count, MPI_INT, root, MPI_COMM_WORLD);
    for (i = 0; i < count && !(rank == root && count % 2); i++)
        wrong += b[i] != rank * count + i + root;
}

static void to_root(int root, int count, int *a, int *b)
{
    int i, in_place = rank == root && count % 2;

    for (i = 0; i < count; i++)
        a[i] = b[i] = rank + i;
    MPI_Reduce(in_place ? MPI_IN_PLACE : a, b, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    for (i = 0; i < count && rank == root; i++)
        wrong += b[i] != ranks * (ranks - 1) / 2 + ranks * i;
    for (i = 0; i < count; i++)
        a[i] = b[root * count + i] = rank * 7 + i;
    MPI_Gather(in_place ? MPI_IN_PLACE : a, count, MPI_INT, b, count, MPI_INT, root, MPI_COMM_WORLD);
    for (i = 0; i < count * ranks && rank == root; i++)
        wrong += b[i] != i / count * 7 + i % count;
}

int main(int argc, char **argv)
{
    static const int counts[] = {1, 4, 13, 3000};
    int n, root, all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (n = 0; n < 4; n++)
        for (root = 0; root < ranks; root++) {
            size_t bytes = (size_t)(counts[n] * ranks) * sizeof(int);
            int *a = malloc(bytes), *b = malloc(bytes);

            from_root(root, counts[n], a, b);
            to_root(root, counts[n], a, b);
            free(a);
            free(b);
        }
    PMPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %d\n", all);
    MPI_Finalize();
    return wrong > 0;
}
