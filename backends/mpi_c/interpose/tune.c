/* ---- Which of both is faster ------------------------------------------------------------------------------
 *
 * COLLC_TUNE=FILE, on all ranks: for every kind of call and every class of sizes, the first call on a communicator
 * times the compiled collective and the MPI's own. From then on the faster one carries out calls of the class.
 * The file has the times of earlier runs: rank 0 of the communicator reads it, tells all ranks, and adds a line
 * for what is timed. So all ranks always choose alike.
 */

/* A class has the sizes up to a power of two. Vectors of more bytes than the largest class are not timed. */
enum { CIP_KINDS = CIP_SCATTER + 1, CIP_CLASSES = 27 };
enum { CIP_NOT_TIMED, CIP_COMPILED, CIP_BUILT_IN };
enum { CIP_ROUNDS = 10, CIP_CALLS = 200, CIP_TUNE_LINE = 160, CIP_TUNE_LINES = 1 << 14 };
#define CIP_BATCH_SECONDS 2e-3

struct cip_tuned {
    int nodes; /* on which the ranks are */
    char choice[CIP_KINDS][CIP_CLASSES];
};

/* What a call that is only timed works on. */
struct cip_trial {
    const struct cip_entry *entry;
    char *in, *out;
    int64_t count;
    int kind, root;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
};

static const char *const cip_kind_names[CIP_KINDS] = {
    "allgather", "allreduce", "alltoall", "broadcast", "gather", "reduce", "reduce-scatter", "scatter",
};

static int cip_class_of(int64_t bytes)
{
    int class = 0;

    while (class < CIP_CLASSES && ((int64_t)1 << class) < bytes)
        class++;
    return class;
}

/* Reads what earlier runs timed. A line that says nothing sensible is as good as none. */
static void cip_read_tuned(const char *path, int ranks, struct cip_tuned *tuned)
{
    FILE *file = fopen(path, "r");
    char line[CIP_TUNE_LINE], kind[32];
    int lines = 0;

    if (file == NULL)
        return;
    while (lines++ < CIP_TUNE_LINES && fgets(line, sizeof line, file) != NULL) {
        long long bytes = 0;
        double built_in = 0, compiled = 0;
        int of_ranks = 0, of_nodes = 0, k;

        if (sscanf(line, "%31[a-z-]\t%d\t%d\t%lld\t%lf\t%lf", kind, &of_ranks, &of_nodes, &bytes, &built_in,
                   &compiled) != 6 || of_ranks != ranks || of_nodes != tuned->nodes)
            continue;
        if (bytes < 1 || bytes > (int64_t)1 << (CIP_CLASSES - 1) || !(built_in > 0) || !(compiled > 0))
            continue;
        for (k = 0; k < CIP_KINDS; k++)
            if (strcmp(kind, cip_kind_names[k]) == 0)
                tuned->choice[k][cip_class_of(bytes)] = built_in < compiled ? CIP_BUILT_IN : CIP_COMPILED;
    }
    fclose(file);
}

/* Adds what was timed, in one piece: other processes may add to the file at the same time. */
static void cip_write_tuned(const char *path, int kind, int ranks, int nodes, int class, const double *best)
{
    char line[CIP_TUNE_LINE];
    int length = snprintf(line, sizeof line, "%s\t%d\t%d\t%lld\t%.3f\t%.3f\n", cip_kind_names[kind], ranks, nodes,
                          (long long)1 << class, best[0] * 1e6, best[1] * 1e6);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (file < 0)
        return;
    if (write(file, line, (size_t)length) < 0)
        length = 0; /* the next run times it again */
    close(file);
}

/* Counts the nodes of a communicator: ranks of one share memory. */
static int cip_count_nodes(MPI_Comm comm, int *nodes)
{
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0, leads, error = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);

    if (error == MPI_SUCCESS && node != MPI_COMM_NULL) {
        error = MPI_Comm_rank(node, &rank);
        MPI_Comm_free(&node);
    }
    leads = rank == 0;
    if (cip_fails_anywhere(comm, error))
        return 0;
    return MPI_Allreduce(&leads, nodes, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS;
}

/* What is known of a communicator, the same on all ranks; collective at its first use. NULL: nothing is timed. */
static struct cip_tuned *cip_tuned_of(struct cip_double *with, int rank, int ranks)
{
    struct cip_tuned *fresh;

    if (with->tuned != NULL || with->untuned)
        return with->tuned;
    with->untuned = 1;
    fresh = calloc(1, sizeof *fresh);
    if (cip_fails_anywhere(with->comm, fresh == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS) ||
        !cip_count_nodes(with->comm, &fresh->nodes)) {
        free(fresh);
        return NULL;
    }
    if (rank == 0)
        cip_read_tuned(cip_all.tune, ranks, fresh);
    if (MPI_Bcast(fresh->choice, sizeof fresh->choice, MPI_CHAR, 0, with->comm) != MPI_SUCCESS) {
        free(fresh);
        return NULL;
    }
    return with->tuned = fresh;
}

/* The MPI's own collective. */
static int cip_call_built_in(const struct cip_trial *it)
{
    int count = (int)it->count;

    switch (it->kind) {
    case CIP_ALLGATHER:
        return MPI_Allgather(it->in, count, it->type, it->out, count, it->type, it->comm);
    case CIP_ALLREDUCE:
        return MPI_Allreduce(it->in, it->out, count, it->type, it->op, it->comm);
    case CIP_ALLTOALL:
        return MPI_Alltoall(it->in, count, it->type, it->out, count, it->type, it->comm);
    case CIP_BROADCAST:
        return MPI_Bcast(it->out, count, it->type, it->root, it->comm);
    case CIP_GATHER:
        return MPI_Gather(it->in, count, it->type, it->out, count, it->type, it->root, it->comm);
    case CIP_REDUCE:
        return MPI_Reduce(it->in, it->out, count, it->type, it->op, it->root, it->comm);
    case CIP_REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(it->in, it->out, count, it->type, it->op, it->comm);
    default:
        return MPI_Scatter(it->in, count, it->type, it->out, count, it->type, it->root, it->comm);
    }
}

/* Seconds of one of some calls, on this rank. */
static int cip_time(const struct cip_trial *it, int compiled, int calls, double *seconds)
{
    int error = MPI_Barrier(it->comm), k;
    double begin = MPI_Wtime();

    for (k = 0; k < calls && error == MPI_SUCCESS; k++)
        error = compiled ? it->entry->call(it->kind == CIP_BROADCAST ? NULL : it->in, it->out, it->count, it->type,
                                           it->op, it->root, it->comm)
                         : cip_call_built_in(it);
    *seconds = (MPI_Wtime() - begin) / calls;
    return error;
}

/* Times both, in turn; best[] has the least seconds of each, of the slowest rank, the same on all ranks. */
static int cip_compare(const struct cip_trial *it, double *best)
{
    double own[2], all[2], slower;
    int error = MPI_SUCCESS, calls = 1, round, which;

    for (round = 0; round <= CIP_ROUNDS && error == MPI_SUCCESS; round++) {
        for (which = 0; which < 2 && error == MPI_SUCCESS; which++)
            error = cip_time(it, which, calls, &own[which]);
        if (cip_fails_anywhere(it->comm, error))
            return MPI_ERR_OTHER;
        error = MPI_Allreduce(own, all, 2, MPI_DOUBLE, MPI_MAX, it->comm);
        for (which = 0; which < 2; which++) /* the first calls of all make connections */
            if (round <= 1 || all[which] < best[which])
                best[which] = all[which];
        slower = best[0] > best[1] ? best[0] : best[1];
        calls = slower * CIP_CALLS < CIP_BATCH_SECONDS ? CIP_CALLS : (int)(CIP_BATCH_SECONDS / slower) + 1;
    }
    return error;
}

/* Times a call with memory of our own in place of the program's; 0 where there is none. */
static int cip_time_both(const struct cip_call *call, const struct cip_entry *entry, int64_t block, struct cip_double *with,
                       double *best)
{
    int reduces = cip_reduces(call), kind = call->kind;
    MPI_Aint lb = 0, extent = 1;
    struct cip_trial it = {entry, NULL, NULL, reduces ? call->send_count : block, kind, call->root,
                           reduces ? call->send_type : MPI_BYTE, call->op, with->comm};
    int64_t bytes, blocks = entry->ranks;
    int error = reduces ? MPI_Type_get_extent(it.type, &lb, &extent) : MPI_SUCCESS;

    bytes = it.count * extent;
    it.in = calloc((size_t)(kind == CIP_ALLTOALL || kind == CIP_SCATTER || kind == CIP_REDUCE_SCATTER ? blocks : 1),
                   (size_t)bytes);
    it.out = calloc((size_t)(kind == CIP_ALLTOALL || kind == CIP_ALLGATHER || kind == CIP_GATHER ? blocks : 1),
                    (size_t)bytes);
    if (it.in == NULL || it.out == NULL)
        error = MPI_ERR_NO_MEM;
    if (!cip_fails_anywhere(with->comm, error))
        error = cip_compare(&it, best);
    else
        error = MPI_ERR_NO_MEM;
    free(it.in);
    free(it.out);
    return error == MPI_SUCCESS;
}

/* Whether the MPI's own collective is the faster one; the same on all ranks. Collective the first time. Only calls of
 * types and operations that are `predefined` are timed. */
static int cip_loses(const struct cip_call *call, const struct cip_entry *entry, int rank, int64_t block,
                     struct cip_double *with, int predefined)
{
    int whole = call->kind == CIP_ALLREDUCE || call->kind == CIP_REDUCE || call->kind == CIP_BROADCAST;
    int class = cip_class_of(whole ? block : block * entry->ranks);
    struct cip_tuned *tuned;
    double best[2];
    char *choice;

    if (class >= CIP_CLASSES || (tuned = cip_tuned_of(with, rank, entry->ranks)) == NULL)
        return 0;
    choice = &tuned->choice[call->kind][class];
    if (*choice == CIP_NOT_TIMED && predefined) {
        *choice = CIP_COMPILED;
        if (cip_time_both(call, entry, block, with, best)) {
            *choice = best[0] < best[1] ? CIP_BUILT_IN : CIP_COMPILED;
            if (rank == 0)
                cip_write_tuned(cip_all.tune, call->kind, entry->ranks, tuned->nodes, class, best);
        }
    }
    return *choice == CIP_BUILT_IN;
}
