/* ---- Calls without counts ---------------------------------------------------------------------- */

enum { ROUNDS = 0 };

static void create_counts(void)
{
}

/* Lays out the buffers of an out-of-place call: inputs, and the expected contents after it. */
static void lay_out(struct test *t)
{
    const struct algorithm *a = t->algorithm;
    int64_t n = t->count, all = n * members, r;
    int at_root = me == a->root;

    switch (a->kind) {
    case ALLREDUCE:
        input(t, &t->send, 0, n, 0);
        fill_reduced(&t->expected, t->dtype, t->op, n, 0);
        break;
    case REDUCE:
        input(t, &t->send, 0, n, 0);
        if (at_root)
            fill_reduced(&t->expected, t->dtype, t->op, n, 0);
        break;
    case REDUCE_SCATTER:
        input(t, &t->send, 0, all, 0);
        fill_reduced(&t->expected, t->dtype, t->op, n, me * n);
        break;
    case ALLGATHER:
    case GATHER:
        input(t, &t->send, 0, n, 0);
        for (r = 0; r < members && (a->kind == ALLGATHER || at_root); r++)
            fill(&t->expected, t->dtype, t->op, r * n, n, (int)r, 0);
        break;
    case BROADCAST:
        if (at_root)
            input(t, &t->send, 0, n, 0);
        fill(&t->expected, t->dtype, t->op, 0, n, a->root, 0);
        break;
    case SCATTER:
        if (at_root)
            input(t, &t->send, 0, all, 0);
        fill(&t->expected, t->dtype, t->op, 0, n, a->root, me * n);
        break;
    case ALLTOALL:
        input(t, &t->send, 0, all, 0);
        for (r = 0; r < members; r++)
            fill(&t->expected, t->dtype, t->op, r * n, n, (int)r, me * n);
        break;
    case CUSTOM:
    case CUSTOM_REDUCTION: break;
    }
}

/* Moves the input to its place for MPI_IN_PLACE, on the ranks that use it. */
static void lay_in_place(struct test *t)
{
    int at_root = me == t->algorithm->root;
    int64_t n = t->count;

    t->send_argument = MPI_IN_PLACE;
    switch (t->algorithm->kind) {
    case ALLREDUCE: input(t, &t->recv, 0, n, 0); break;
    case ALLTOALL: input(t, &t->recv, 0, n * members, 0); break;
    case ALLGATHER: input(t, &t->recv, me * n, n, 0); break;
    case REDUCE_SCATTER:
        input(t, &t->recv, 0, n * members, 0);
        /* blocks after the first stay unchanged */
        input(t, &t->expected, n, n * (members - 1), n);
        break;
    case BROADCAST:
        if (at_root)
            input(t, &t->recv, 0, n, 0);
        break;
    case REDUCE:
    case GATHER:
        if (at_root)
            input(t, &t->recv, t->algorithm->kind == GATHER ? me * n : 0, n, 0);
        else
            t->send_argument = t->send_now.data, t->recv_argument = NULL;
        break;
    case SCATTER:
        t->send_argument = at_root ? (void *)t->send_now.data : NULL;
        if (at_root) {
            t->recv_argument = MPI_IN_PLACE;
            memset(t->expected.all, FILL, t->expected.bytes);
        }
        break;
    case CUSTOM:
    case CUSTOM_REDUCTION: break;
    }
}

static void prepare(struct test *t)
{
    static const int blocks_sent[] = {0, 1, 0, 0, 0, 0, 1, 1};
    static const int blocks_received[] = {1, 0, 0, 0, 0, 1, 0, 1};
    enum kind kind = t->algorithm->kind;
    int64_t n = t->count, all = n * members;
    int64_t sent = blocks_sent[kind] ? all : n;
    int64_t received = blocks_received[kind] || (t->in_place && kind == REDUCE_SCATTER) ? all : n;

    if (me >= members) {
        prepare_relay(t, all);
        return;
    }
    create_buffers(t, sent, received);
    lay_out(t);
    if (kind == BROADCAST && me != t->algorithm->root)
        t->send_argument = NULL;
    if (t->in_place)
        lay_in_place(t);
    copy(&t->sent, &t->send);
}

static int call(struct test *t)
{
    return t->algorithm->call(t->send_argument, t->recv_argument, t->count, dtypes[t->dtype],
                              ops[t->op], MPI_COMM_WORLD);
}

/* The MPI's own collective, for comparison. */
static int builtin(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op,
                   enum kind kind, int root, MPI_Comm comm)
{
    switch (kind) {
    case ALLGATHER: return MPI_Allgather(send, n, type, recv, n, type, comm);
    case REDUCE_SCATTER: return MPI_Reduce_scatter_block(send, recv, n, type, op, comm);
    case ALLREDUCE: return MPI_Allreduce(send, recv, n, type, op, comm);
    case BROADCAST: return MPI_Bcast(recv, n, type, root, comm);
    case REDUCE: return MPI_Reduce(send, recv, n, type, op, root, comm);
    case GATHER: return MPI_Gather(send, n, type, recv, n, type, root, comm);
    case SCATTER: return MPI_Scatter(send, n, type, recv, n, type, root, comm);
    default: return MPI_Alltoall(send, n, type, recv, n, type, comm);
    }
}

static int call_builtin(struct test *t)
{
    MPI_Comm comm = among[t->algorithm - algorithms];

    if (comm == MPI_COMM_NULL)
        return MPI_SUCCESS;
    return builtin(t->send_argument, t->recv_argument, t->count, dtypes[t->dtype], ops[t->op],
                   t->algorithm->kind, t->algorithm->root, comm);
}
