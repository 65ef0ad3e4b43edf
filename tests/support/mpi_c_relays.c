/* All forms of functions in which ranks relay, against the MPI's own on the members, and communicators of a wrong size.
 *
 * Runs on RANKS ranks, of which the first MEMBERS have data. The library is `pod`, with `pod_all` (allgather), `pod_sums`
 * (allreduce), `pod_pieces` (reduce-scatter), `pod_news` (broadcast), `pod_total` (reduce), `pod_heap` (gather), `pod_deal`
 * (scatter), `pod_swap` (alltoall), all at rank ROOT if rooted, and `pod_some` (alltoallv).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "pod.h"

enum { COUNT = 1500, MOST = COUNT * MEMBERS, FILL = -7 };
enum form { CALL, CALL_C, BEGIN, INIT, FORMS };

typedef int call(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
typedef int call_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
typedef int begin(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, pod_request *);
typedef int init(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, pod_request *);

struct function {
    const char *name;
    call *call;
    call_c *call_c;
    begin *begin;
    init *init;
};

#define FUNCTION(name) {#name, pod_##name, pod_##name##_c, pod_##name##_begin, pod_##name##_init}
static const struct function functions[] = {
    FUNCTION(all), FUNCTION(sums), FUNCTION(pieces), FUNCTION(news),
    FUNCTION(total), FUNCTION(heap), FUNCTION(deal), FUNCTION(swap),
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static int rank, failures;
static MPI_Comm members; /* MPI_COMM_NULL on ranks that relay */

static void expect(int ok, const char *what, const char *name, int form)
{
    if (ok)
        return;
    if (failures++ < 9)
        printf("relays rank=%d %s form=%d failed: %s\n", rank, name, form, what);
    fflush(stdout);
}

#define EXPECT(condition, name, form) expect(condition, #condition, name, form)

static int builtin(int number, const int *send, int *recv)
{
    switch (number) {
    case 0: return MPI_Allgather(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, members);
    case 1: return MPI_Allreduce(send, recv, COUNT, MPI_INT, MPI_SUM, members);
    case 2: return MPI_Reduce_scatter_block(send, recv, COUNT, MPI_INT, MPI_SUM, members);
    case 3:
        if (rank == ROOT)
            memcpy(recv, send, COUNT * sizeof *recv);
        return MPI_Bcast(recv, COUNT, MPI_INT, ROOT, members);
    case 4: return MPI_Reduce(send, recv, COUNT, MPI_INT, MPI_SUM, ROOT, members);
    case 5: return MPI_Gather(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, ROOT, members);
    case 6: return MPI_Scatter(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, ROOT, members);
    default: return MPI_Alltoall(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, members);
    }
}

struct buffers {
    int send[MOST], sent[MOST], recv[MOST], expected[MOST];
};

static void fill(struct buffers *b, int seed)
{
    int k;

    for (k = 0; k < MOST; k++) {
        b->send[k] = b->sent[k] = (rank + 1) * (k + seed);
        b->recv[k] = b->expected[k] = FILL;
    }
}

static void compare(const struct buffers *b, const char *name, int form)
{
    EXPECT(memcmp(b->recv, b->expected, sizeof b->recv) == 0, name, form);
    EXPECT(memcmp(b->send, b->sent, sizeof b->send) == 0, name, form);
}

/* A call of one form. Ranks that relay give buffers, which nobody may touch, or none. */
static void one(int number, enum form form, int give)
{
    static struct buffers b;
    const struct function *f = &functions[number];
    int relays = members == MPI_COMM_NULL, turns = form == INIT ? 2 : 1, turn;
    const void *send = relays && !give ? NULL : b.send;
    void *recv = relays && !give ? NULL : b.recv;
    pod_request request = NULL;

    if (form == INIT)
        EXPECT(f->init(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_SUCCESS,
               f->name, form);
    for (turn = 0; turn < turns; turn++) {
        int error = MPI_SUCCESS;

        fill(&b, turn + (int)form);
        if (!relays)
            builtin(number, b.send, b.expected);
        switch (form) {
        case CALL: error = f->call(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
        case CALL_C: error = f->call_c(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
        case BEGIN: error = f->begin(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request); break;
        default: error = pod_start(&request);
        }
        EXPECT(error == MPI_SUCCESS, f->name, form);
        EXPECT(pod_wait(&request) == MPI_SUCCESS, f->name, form);
        compare(&b, f->name, form);
    }
    if (form == INIT)
        EXPECT(pod_free(&request) == MPI_SUCCESS, f->name, form);
}

/* All functions at once, some of them in calls of one lane. */
static void together(void)
{
    static struct buffers b[2 * FUNCTIONS];
    pod_request requests[2 * FUNCTIONS];
    int relays = members == MPI_COMM_NULL, k;

    for (k = 0; k < 2 * FUNCTIONS; k++) {
        fill(&b[k], k);
        if (!relays)
            builtin(k % FUNCTIONS, b[k].send, b[k].expected);
        EXPECT(functions[k % FUNCTIONS].begin(relays ? NULL : b[k].send, relays ? NULL : b[k].recv, COUNT, MPI_INT,
                                              MPI_SUM, MPI_COMM_WORLD, &requests[k]) == MPI_SUCCESS,
               "together", k);
    }
    EXPECT(pod_waitall(2 * FUNCTIONS, requests) == MPI_SUCCESS, "together", 0);
    for (k = 0; k < 2 * FUNCTIONS; k++)
        compare(&b[k], functions[k % FUNCTIONS].name, k);
}

/* Calls with counts: ranks that relay ignore all of these. */
static void some(void)
{
    static struct buffers b;
    int send_counts[MEMBERS], recv_counts[MEMBERS], places[MEMBERS], k, error;
    pod_request request = NULL;

    fill(&b, 3);
    for (k = 0; k < MEMBERS; k++) {
        send_counts[k] = 100 * rank + 7 * k;
        recv_counts[k] = 100 * k + 7 * rank;
        places[k] = COUNT * k;
    }
    if (members == MPI_COMM_NULL) {
        EXPECT(pod_some(NULL, NULL, NULL, MPI_DATATYPE_NULL, NULL, NULL, NULL, MPI_DATATYPE_NULL, MPI_COMM_WORLD) ==
                   MPI_SUCCESS, "some", 0);
        error = pod_some_begin(NULL, NULL, NULL, MPI_DATATYPE_NULL, NULL, NULL, NULL, MPI_DATATYPE_NULL,
                               MPI_COMM_WORLD, &request);
    } else {
        MPI_Alltoallv(b.send, send_counts, places, MPI_INT, b.expected, recv_counts, places, MPI_INT, members);
        EXPECT(pod_some(b.send, send_counts, places, MPI_INT, b.recv, recv_counts, places, MPI_INT, MPI_COMM_WORLD) ==
                   MPI_SUCCESS, "some", 0);
        compare(&b, "some", 0);
        memset(b.recv, 0, sizeof b.recv);
        memset(b.expected, 0, sizeof b.expected);
        MPI_Alltoallv(b.send, send_counts, places, MPI_INT, b.expected, recv_counts, places, MPI_INT, members);
        error = pod_some_begin(b.send, send_counts, places, MPI_INT, b.recv, recv_counts, places, MPI_INT,
                               MPI_COMM_WORLD, &request);
    }
    EXPECT(error == MPI_SUCCESS, "some", 1);
    EXPECT(pod_wait(&request) == MPI_SUCCESS, "some", 1);
    compare(&b, "some", 1);
    if (members == MPI_COMM_NULL)
        error = pod_some_init(NULL, NULL, NULL, MPI_DATATYPE_NULL, NULL, NULL, NULL, MPI_DATATYPE_NULL, MPI_COMM_WORLD,
                              MPI_INFO_NULL, &request);
    else
        error = pod_some_init(b.send, send_counts, places, MPI_INT, b.recv, recv_counts, places, MPI_INT,
                              MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    EXPECT(error == MPI_SUCCESS, "some", 2);
    for (k = 0; k < 2; k++) {
        memset(b.recv, 0, sizeof b.recv);
        if (members == MPI_COMM_NULL)
            memset(b.expected, 0, sizeof b.expected);
        EXPECT(pod_start(&request) == MPI_SUCCESS, "some", 2);
        EXPECT(pod_wait(&request) == MPI_SUCCESS, "some", 2);
        compare(&b, "some", 2);
    }
    EXPECT(pod_free(&request) == MPI_SUCCESS, "some", 2);
}

/* Communicators without ranks that relay, or without one of them: an error at once, on all their ranks. */
static void wrong_sizes(void)
{
    static struct buffers b;
    int size, k;

    for (size = MEMBERS; size < RANKS; size += RANKS - 1 - MEMBERS) {
        MPI_Comm small;

        MPI_Comm_split(MPI_COMM_WORLD, rank < size ? 0 : MPI_UNDEFINED, rank, &small);
        if (small == MPI_COMM_NULL)
            continue;
        for (k = 0; k < FUNCTIONS; k++) {
            pod_request request = NULL;

            fill(&b, 0);
            EXPECT(functions[k].call(b.send, b.recv, COUNT, MPI_INT, MPI_SUM, small) == MPI_ERR_COMM, "size", size);
            EXPECT(functions[k].begin(b.send, b.recv, COUNT, MPI_INT, MPI_SUM, small, &request) == MPI_ERR_COMM, "size",
                   size);
            compare(&b, functions[k].name, size);
        }
        MPI_Comm_free(&small);
    }
}

int main(int argc, char **argv)
{
    int number, form, all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < MEMBERS ? 0 : MPI_UNDEFINED, rank, &members);
    wrong_sizes();
    for (form = 0; form < FORMS; form++)
        for (number = 0; number < FUNCTIONS; number++)
            one(number, (enum form)form, number % 2);
    together();
    some();
    MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("relays-end failures=%d\n", all);
    if (members != MPI_COMM_NULL)
        MPI_Comm_free(&members);
    MPI_Finalize();
    return 0;
}
