/* Counts that no int holds: sizes of messages and results, without and with the memory for them.
 *
 * `large virtual`, on four ranks: elements lie all at one address, and a message carries its own length instead of
 * its data, so any count fits. What is sent must be what is expected, and all of it together what the collective
 * needs. `large real COUNT`, on two ranks, moves so many bytes indeed. The library is `pod`: `pod_sums` (allreduce),
 * `pod_pieces` (reduce-scatter), `pod_rows` (allgather), `pod_swap` (alltoall), `pod_news` (broadcast from 0);
 * `pod_pair` and `pod_word` are an allreduce and a broadcast of two ranks.
 */
#define _POSIX_C_SOURCE 200112L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "pod.h"

enum { N = 4, MOST = 4096 };

static int rank, is_virtual, failures;

/* ---- an MPI that moves lengths instead of data */

static long long sent[MOST], expected[MOST], arrived[MOST], reduced, copied;
static int sends, receives, large;

static long long bytes_of(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size;

    PMPI_Type_size_x(type, &size);
    large += count > INT32_MAX || size > INT32_MAX;
    return (long long)(count * size);
}

static int send_length(long long bytes, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (sends == MOST)
        return MPI_ERR_OTHER;
    sent[sends] = bytes;
    return PMPI_Isend(&sent[sends++], 1, MPI_LONG_LONG, to, tag, comm, request);
}

static int receive_length(long long bytes, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (receives == MOST)
        return MPI_ERR_OTHER;
    expected[receives] = bytes;
    return PMPI_Irecv(&arrived[receives++], 1, MPI_LONG_LONG, from, tag, comm, request);
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    return is_virtual ? send_length(bytes_of(count, type), to, tag, comm, request)
                      : PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    return is_virtual ? receive_length(bytes_of(count, type), from, tag, comm, request)
                      : PMPI_Irecv(buffer, count, type, from, tag, comm, request);
}

#if MPI_VERSION >= 4
int MPI_Isend_c(const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag,
                MPI_Comm comm, MPI_Request *request)
{
    return is_virtual ? send_length(bytes_of(count, type), to, tag, comm, request)
                      : PMPI_Isend_c(buffer, count, type, to, tag, comm, request);
}

int MPI_Irecv_c(void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    return is_virtual ? receive_length(bytes_of(count, type), from, tag, comm, request)
                      : PMPI_Irecv_c(buffer, count, type, from, tag, comm, request);
}
#endif

int MPI_Reduce_local(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op)
{
    if (!is_virtual)
        return PMPI_Reduce_local(in, inout, count, type, op);
    reduced += bytes_of(count, type);
    return MPI_SUCCESS;
}

int MPI_Sendrecv(const void *from, int count, MPI_Datatype type, int to, int tag, void *into,
                 int number, MPI_Datatype as, int source, int other, MPI_Comm comm,
                 MPI_Status *status)
{
    if (!is_virtual)
        return PMPI_Sendrecv(from, count, type, to, tag, into, number, as, source, other, comm,
                             status);
    copied += bytes_of(count, type);
    return MPI_SUCCESS;
}

/* ---- without memory */

static void nothing(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

typedef int collective(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);

/* A call of `count` elements of `bytes` bytes that lie all at one address: `moved` times the count is received and
 * `added` times it reduced, by all ranks together. */
static void measure(const char *name, collective *call, long long count, int bytes, int moved,
                    int added)
{
    static char a[4096], b[4096];
    long long totals[2] = {0, 0};
    MPI_Datatype several, element;
    MPI_Op op;
    int error, wrong = 0, most, k;

    MPI_Type_contiguous(bytes, MPI_BYTE, &several);
    MPI_Type_create_resized(several, 0, 0, &element);
    MPI_Type_commit(&element);
    MPI_Op_create(nothing, 1, &op);
    sends = receives = large = 0;
    reduced = copied = 0;
    is_virtual = 1;
    error = call(a, b, (MPI_Count)count, element, op, MPI_COMM_WORLD);
    is_virtual = 0;
    for (k = 0; k < receives; k++)
        wrong += arrived[k] != expected[k], totals[0] += arrived[k];
    totals[1] = reduced;
    PMPI_Allreduce(MPI_IN_PLACE, totals, 2, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    PMPI_Allreduce(&large, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (error != MPI_SUCCESS || wrong || totals[0] != moved * count * bytes ||
        totals[1] != added * count * bytes) {
        failures++;
        printf("large %s count=%lld rank=%d: error %d, %d lengths wrong, %lld bytes moved, %lld "
               "reduced\n",
               name, count, rank, error, wrong, totals[0], totals[1]);
    }
    if (rank == 0)
        printf("%s %lld %s\n", name, count, most ? "large" : "small");
    MPI_Op_free(&op);
    MPI_Type_free(&element);
    MPI_Type_free(&several);
}

static void measure_all(long long count)
{
    measure("sums", pod_sums_c, count, 1, 2 * (N - 1), N - 1);
    measure("pieces", pod_pieces_c, count, 1, N * (N - 1), N * (N - 1));
    measure("rows", pod_rows_c, count, 2, N * (N - 1), 0);
    measure("swap", pod_swap_c, count, 3, N * (N - 1), 0);
    measure("news", pod_news_c, count, 1, N - 1, 0);
}

/* ---- with memory */

static unsigned char pattern(size_t k, int from)
{
    return (unsigned char)((k * 2654435761u >> 13) ^ (size_t)(from * 77));
}

static void move(size_t count)
{
    unsigned char *data = malloc(count);
    size_t k, wrong = 0;

    if (data == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (k = 0; k < count; k++)
        data[k] = rank == 0 ? pattern(k, 0) : 0;
    failures += pod_word_c(NULL, data, (MPI_Count)count, MPI_BYTE, MPI_OP_NULL, MPI_COMM_WORLD) !=
                MPI_SUCCESS;
    for (k = 0; k < count; k++)
        wrong += data[k] != pattern(k, 0), data[k] = pattern(k, rank);
    failures += pod_pair_c(MPI_IN_PLACE, data, (MPI_Count)count, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD) !=
                MPI_SUCCESS;
    for (k = 0; k < count; k++)
        wrong += data[k] != (pattern(k, 0) ^ pattern(k, 1));
    failures += wrong > 0;
    free(data);
}

int main(int argc, char **argv)
{
    static const long long counts[] = {
        1000, INT32_MAX, (1LL << 31) + 1, (1LL << 33) + 7, (1LL << 40) + 3,
    };
    int sum;
    size_t k;

    alarm(600);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 3)
        move(strtoul(argv[2], NULL, 10));
    else
        for (k = 0; k < sizeof counts / sizeof *counts; k++)
            measure_all(counts[k]);
    PMPI_Reduce(&failures, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("large-end failures=%d\n", sum);
    return 0;
}
