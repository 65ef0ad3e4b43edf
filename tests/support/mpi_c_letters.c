/* Small messages of blocking calls go through shared memory, if all ranks can have it; others go by MPI.
 *
 * `letters WANTED`, on four ranks, with `sums` (allreduce), `all` (allgather) and `news` (broadcast from 1). WANTED is 1 if
 * letters are expected. Prints what is not as expected, and the messages that the MPI got for small calls.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include "pod.h"

enum { N = 4, MOST = 70000, LETTER = 8192, LARGE = 1 << 22, ROUNDS = 5000 };

static int rank, failures, messages;

static void expect(int ok, const char *what, int line)
{
    if (ok)
        return;
    failures++;
    printf("letters rank=%d line=%d failed: %s\n", rank, line, what);
    fflush(stdout);
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    messages++;
    return PMPI_Isend(buffer, count, type, dest, tag, comm, request);
}

/* Lines of a process's memory map that are shared memory of ours. */
static int mapped(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    int found = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        found += strstr(line, "/memfd:collc") != NULL;
    if (file != NULL)
        fclose(file);
    return found;
}

/* Descriptors that are open. */
static int opened(void)
{
    int number, found = 0;

    for (number = 0; number < 256; number++)
        found += fcntl(number, F_GETFD) >= 0;
    return found;
}

/* Sums of every size around those of a letter, in and out of place. */
static void sums_of(MPI_Comm comm, int count)
{
    static int in[MOST], out[MOST];
    int k, wrong = 0;

    for (k = 0; k < count; k++)
        in[k] = out[k] = (rank + 1) * k + rank;
    EXPECT(pod_sums(in, out, count, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    for (k = 0; k < count; k++)
        wrong += out[k] != 10 * k + 6;
    memcpy(out, in, sizeof in);
    EXPECT(pod_sums(MPI_IN_PLACE, out, count, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    for (k = 0; k < count; k++)
        wrong += out[k] != 10 * k + 6;
    EXPECT(wrong == 0);
}

/* Elements with a gap, and at the receiver in another order than at the sender. */
static void gaps(MPI_Comm comm)
{
    struct { double value; int index; } in[5], out[5];
    int lengths[] = {1, 1}, k, from;
    MPI_Aint places[] = {0, 8};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT}, pair, wide;
    char mine[3 * 12], all[N * 3 * 12];

    MPI_Type_create_struct(2, lengths, places, types, &pair);
    MPI_Type_create_resized(pair, 0, sizeof in[0], &wide);
    MPI_Type_commit(&wide);
    for (k = 0; k < 5; k++) {
        in[k].value = k + rank;
        in[k].index = rank;
    }
    EXPECT(pod_sums(in, out, 5, MPI_DOUBLE_INT, MPI_MAXLOC, comm) == MPI_SUCCESS);
    for (k = 0; k < 5; k++)
        EXPECT(out[k].value == k + N - 1 && out[k].index == N - 1);
    if (rank % 2 == 0) { /* as bytes on odd ranks */
        struct { double value; int index; } got[N * 3];

        EXPECT(pod_all(in, got, 3, wide, MPI_OP_NULL, comm) == MPI_SUCCESS);
        for (from = 0; from < N; from += 2)
            EXPECT(got[3 * from + 2].value == 2 + from && got[3 * from + 2].index == from);
    } else {
        memset(mine, rank, sizeof mine);
        EXPECT(pod_all(mine, all, sizeof mine, MPI_BYTE, MPI_OP_NULL, comm) == MPI_SUCCESS);
        for (from = 1; from < N; from += 2)
            EXPECT(all[from * 36] == from && all[from * 36 + 35] == from);
    }
    MPI_Type_free(&wide);
    MPI_Type_free(&pair);
}

static void by_which_way(MPI_Comm comm, int letters)
{
    int in[4] = {rank, rank, rank, rank}, out[4], before = messages, large;
    pod_request request;

    pod_sums(in, out, 4, MPI_INT, MPI_SUM, comm);
    EXPECT((messages == before) == letters);
    if (rank == 0)
        printf("small: %s\n", messages == before ? "letters" : "messages");
    before = messages;
    sums_of(comm, MOST);
    large = messages - before;
    EXPECT(large > 0);
    before = messages;
    pod_sums_begin(in, out, 4, MPI_INT, MPI_SUM, comm, &request);
    pod_wait(&request);
    EXPECT(messages > before);
}

/* A rank that asks for no other messages of the program brings them on in its calls, though these never wait for long. */
static void others_go_on(MPI_Comm comm)
{
    static char data[LARGE];
    MPI_Request request;
    int round, done = 0, all = 0, mine = 0;

    if (rank == 1)
        MPI_Irecv(data, LARGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
    pod_sums(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    if (rank == 0)
        PMPI_Isend(data, LARGE, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
    for (round = 0; round < ROUNDS && !all; round++) {
        if (rank == 0 && !done)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        mine = rank != 0 || done;
        pod_sums(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    }
    EXPECT(all);
    if (rank < 2)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A child of a rank has nothing of the memory. */
static void in_a_child(int letters)
{
    int status = 0;
    pid_t child;

    EXPECT((mapped() > 0) == letters);
    fflush(stdout);
    child = fork();
    if (child == 0)
        _exit(mapped());
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Communicators come and go, and their memory with them. */
static void nothing_is_left(void)
{
    int k, before = mapped(), files = opened(), in = 1, out;

    for (k = 0; k < 40; k++) {
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        EXPECT(pod_sums(&in, &out, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && out == N);
        MPI_Comm_free(&comm);
    }
    EXPECT(mapped() == before && opened() == files);
}

/* A call with different counts is wrong; receivers see that a letter has another size, and later calls end with that. */
static void another_size(void)
{
    int data[8] = {0};
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank == 1) {
        EXPECT(pod_news(data, data, 2, MPI_INT, MPI_OP_NULL, comm) == MPI_SUCCESS);
        return;
    }
    EXPECT(pod_news(data, data, 8, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_TRUNCATE);
    EXPECT(pod_news(data, data, 8, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_TRUNCATE);
}

int main(int argc, char **argv)
{
    const int counts[] = {1, 2, 3, 15, 16, 17, 511, 512, 513, 2047, 2048, 2049, 8191, 8192, 8193, 32764, 32768, 32769};
    int letters, k, again;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    letters = argc > 1 && atoi(argv[1]);
    for (again = 0; again < 3; again++)
        for (k = 0; k < (int)(sizeof counts / sizeof *counts); k++)
            sums_of(MPI_COMM_WORLD, counts[k]);
    for (k = 0; k < 100; k++)
        sums_of(MPI_COMM_WORLD, 1 + k % 7);
    gaps(MPI_COMM_WORLD);
    by_which_way(MPI_COMM_WORLD, letters);
    in_a_child(letters);
    nothing_is_left();
    others_go_on(MPI_COMM_WORLD);
    if (argc > 2 && strcmp(argv[2], "kill") == 0) {
        for (k = 0;; k++) {
            if (rank == 2 && k == 1000)
                raise(SIGKILL);
            sums_of(MPI_COMM_WORLD, 1 + k % 7);
        }
    }
    if (argc > 2 && strcmp(argv[2], "size") == 0)
        another_size();
    MPI_Finalize();
    if (rank == 0 && failures == 0)
        printf("letters-end\n");
    return 0;
}
