/* ---- Calls with counts ------------------------------------------------------------------------- */

/* Rounds of each case with random counts, which are checked and not timed, after those with planned counts. */
enum { ROUNDS = 8 };

static int64_t *sizes, *begins; /* of all shards, and their elements before each */
static uint32_t drawn;

static uint32_t draw(uint32_t below)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(drawn >> 4) * below) >> 28);
}

static void *numbers(int number, size_t bytes)
{
    void *memory = calloc((size_t)number + 1, bytes);

    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return memory;
}

static void create_counts(void)
{
    int most = ranks * ranks;
    size_t k;

    for (k = 0; k < sizeof algorithms / sizeof *algorithms; k++)
        most = algorithms[k].shards > most ? algorithms[k].shards : most;
    sizes = numbers(most, sizeof *sizes);
    begins = numbers(most, sizeof *begins);
    send_counts = numbers(most, sizeof(int));
    send_displs = numbers(most, sizeof(int));
    recv_counts = numbers(most, sizeof(int));
    recv_displs = numbers(most, sizeof(int));
}

/* What a vector of n elements is in the plan, in whole elements. */
static void plan_sizes(const struct algorithm *a, int64_t n, int shards)
{
    double before = 0, scale = (double)n / (double)a->whole;
    int k;

    for (k = 0; k < shards; k++) {
        sizes[k] = (int64_t)((before + (double)a->weights[k]) * scale) - (int64_t)(before * scale);
        before += (double)a->weights[k];
    }
}

/* Nothing at all, one shard that is all, or any; some are nothing. The same on all ranks. */
static void draw_sizes(int64_t n, int shards, int round)
{
    uint32_t most = n < 3 ? 3 : n > 5000 ? 5000 : (uint32_t)n;
    int k;

    drawn = (uint32_t)round * 2654435761u + (uint32_t)n;
    for (k = 0; k < shards; k++)
        sizes[k] = round <= 2 || draw(4) == 0 ? 0 : (int64_t)draw(most + 1);
    if (round == 2)
        sizes[draw((uint32_t)shards)] = most;
}

static int is_custom(const struct algorithm *a)
{
    return a->kind == CUSTOM || a->kind == CUSTOM_REDUCTION;
}

/* Where the blocks of this rank's buffers are among all shards. */
struct blocks {
    int first, stride, number;
    const int *list;
};

static int shard_of(const struct blocks *blocks, int k)
{
    return blocks->list != NULL ? blocks->list[k] : blocks->first + k * blocks->stride;
}

static struct blocks blocks_of(const struct test *t, int receives)
{
    static const int own_input[] = {1, 0, 0, 0, 0, 1, 0, 0}, own_output[] = {0, 1, 0, 0, 0, 0, 1, 0};
    const struct algorithm *a = t->algorithm;
    struct blocks all = {0, 1, members, NULL}, own = {me, 1, 1, NULL}, none = {0, 1, 0, NULL};
    struct blocks row = {me * members, 1, members, NULL}, column = {me, members, members, NULL};

    if (is_custom(a)) {
        const int *begin = a->begins + 2 * me + receives;
        struct blocks listed = {0, 1, begin[1] - begin[0], a->listed + begin[0]};

        return listed;
    }
    if (a->kind == ALLTOALL)
        return receives ? column : row;
    if (receives ? own_output[a->kind] : own_input[a->kind])
        return own;
    return a->root >= 0 && me != a->root ? none : all;
}

/* Writes the counts of blocks; returns the elements of their buffer. Blocks may have room between them. */
static int64_t place(int *counts, int *displs, struct blocks blocks, int apart)
{
    int64_t at = 0;
    int k;

    for (k = 0; k < blocks.number; k++) {
        counts[k] = (int)sizes[shard_of(&blocks, k)];
        at += apart ? draw(3) : 0;
        displs[k] = (int)at;
        at += counts[k];
    }
    return at;
}

static void input_blocks(struct test *t, struct buffer *to, const int *displs, struct blocks blocks)
{
    int k;

    for (k = 0; k < blocks.number; k++)
        input(t, to, displs[k], sizes[shard_of(&blocks, k)], begins[shard_of(&blocks, k)]);
}

/* Blocks as they are received: from the rank that has them. A rank that has one block has its elements from 0 on. */
static void expect_blocks(struct test *t, struct blocks blocks)
{
    const struct algorithm *a = t->algorithm;
    int k;

    for (k = 0; k < blocks.number; k++) {
        int shard = shard_of(&blocks, k), one = a->kind == ALLGATHER || a->kind == GATHER;
        int from = a->kind == CUSTOM ? a->holders[shard] : a->kind == SCATTER ? a->root : k;

        fill(&t->expected, t->dtype, t->op, recv_displs[k], sizes[shard], from, one ? 0 : begins[shard]);
    }
}

/* Blocks that combine the elements of the ranks that contribute to them. */
static void expect_sums(struct test *t, struct blocks blocks)
{
    const struct algorithm *a = t->algorithm;
    int64_t step = t->dtype == STRIDED ? 2 : 1, i, two[2];
    int k, r, part;

    for (k = 0; k < blocks.number; k++) {
        int shard = shard_of(&blocks, k);

        for (i = 0; i < sizes[shard]; i++) {
            for (part = 0; part < step; part++)
                for (r = a->first_sources[shard]; r < a->first_sources[shard + 1]; r++) {
                    int64_t v = value(t->op, a->sources[r], step * (begins[shard] + i) + part);

                    two[part] = r == a->first_sources[shard] ? v : apply(t->op, two[part], v);
                }
            put(t->dtype, t->expected.data + (size_t)(recv_displs[k] + i) * extents[t->dtype], two[0],
                step == 2 ? two[1] : 0);
        }
    }
}

/* Moves the input to its place for MPI_IN_PLACE, on the ranks that use it. */
static void lay_in_place(struct test *t, struct blocks in, int64_t all)
{
    int at_root = me == t->algorithm->root;

    switch (t->algorithm->kind) {
    case ALLGATHER:
        t->send_argument = MPI_IN_PLACE;
        input(t, &t->recv, recv_displs[me], sizes[me], 0);
        break;
    case REDUCE_SCATTER:
        t->send_argument = MPI_IN_PLACE;
        input(t, &t->recv, 0, all, 0);
        input(t, &t->expected, sizes[me], all - sizes[me], sizes[me]); /* stays unchanged */
        break;
    case ALLTOALL:
        t->send_argument = MPI_IN_PLACE;
        input_blocks(t, &t->recv, recv_displs, in);
        break;
    case GATHER:
        if (at_root) {
            t->send_argument = MPI_IN_PLACE;
            input(t, &t->recv, recv_displs[me], sizes[me], 0);
        }
        break;
    case CUSTOM:
    case CUSTOM_REDUCTION: break;
    default:
        if (at_root) {
            t->recv_argument = MPI_IN_PLACE;
            memset(t->expected.all, FILL, t->expected.bytes);
        }
    }
}

/* Writes what a rank that only relays gives: all counts where every rank knows them; else none, and places never. */
static void give_relay(struct test *t, int shards)
{
    int known = t->algorithm->kind == ALLGATHER || t->algorithm->kind == REDUCE_SCATTER, k;

    for (k = 0; k < members; k++) {
        send_counts[k] = send_displs[k] = recv_displs[k] = -1;
        recv_counts[k] = known ? (int)sizes[k] : -1;
    }
    prepare_relay(t, shards > 0 ? begins[shards - 1] + sizes[shards - 1] : 0);
}

static void prepare(struct test *t)
{
    const struct algorithm *a = t->algorithm;
    int shards = is_custom(a) ? a->shards : a->kind == ALLTOALL ? members * members : members, k;
    int apart = t->round > 0 && a->kind != REDUCE_SCATTER, one = a->kind == ALLGATHER || a->kind == GATHER;
    struct blocks in = blocks_of(t, 0), out = blocks_of(t, 1);
    int64_t all = 0, sent, received;

    if (t->round == 0)
        plan_sizes(a, t->count, shards);
    else
        draw_sizes(t->count, shards, t->round);
    for (k = 0; k < shards; k++) { /* in place what comes replaces what goes */
        if (a->kind == ALLTOALL && t->in_place && k % members < k / members)
            sizes[k] = sizes[k % members * members + k / members];
        begins[k] = all;
        all += sizes[k];
    }
    if (me >= members) {
        give_relay(t, shards);
        return;
    }
    sent = place(send_counts, send_displs, in, apart && !one);
    received = place(recv_counts, recv_displs, out, apart && a->kind != SCATTER);
    if (a->kind == REDUCE_SCATTER) {
        place(recv_counts, recv_displs, in, 0);
        received = t->in_place ? all : sizes[me];
    }
    create_buffers(t, sent, received);
    if (one)
        input(t, &t->send, 0, sizes[me], 0);
    else
        input_blocks(t, &t->send, send_displs, in);
    if (a->kind == REDUCE_SCATTER)
        fill_reduced(&t->expected, t->dtype, t->op, sizes[me], begins[me]);
    else if (a->kind == CUSTOM_REDUCTION)
        expect_sums(t, out);
    else
        expect_blocks(t, out);
    if (t->in_place)
        lay_in_place(t, in, all);
    copy(&t->sent, &t->send);
}

static int call(struct test *t)
{
    return t->algorithm->call(t->send_argument, t->recv_argument, dtypes[t->dtype], ops[t->op], t->algorithm->root,
                              MPI_COMM_WORLD);
}

/* The MPI's own collective, for comparison. */
static int call_builtin(struct test *t)
{
    const void *send = t->send_argument;
    void *recv = t->recv_argument;
    MPI_Datatype type = dtypes[t->dtype];
    MPI_Comm comm = among[t->algorithm - algorithms];
    int root = t->algorithm->root;

    if (comm == MPI_COMM_NULL)
        return MPI_SUCCESS;
    switch (t->algorithm->kind) {
    case ALLGATHER: return MPI_Allgatherv(send, send_counts[0], type, recv, recv_counts, recv_displs, type, comm);
    case REDUCE_SCATTER: return MPI_Reduce_scatter(send, recv, recv_counts, type, ops[t->op], comm);
    case GATHER: return MPI_Gatherv(send, send_counts[0], type, recv, recv_counts, recv_displs, type, root, comm);
    case SCATTER: return MPI_Scatterv(send, send_counts, send_displs, type, recv, recv_counts[0], type, root, comm);
    case CUSTOM:
    case CUSTOM_REDUCTION: return MPI_SUCCESS; /* there is none */
    default:
        return MPI_Alltoallv(send, send_counts, send_displs, type, recv, recv_counts, recv_displs, type, comm);
    }
}
