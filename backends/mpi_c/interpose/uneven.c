/* ---- Calls with a count for each rank ------------------------------------------------------------------------
 *
 * Blocks are padded to the largest one. Of MPI_Allgatherv and MPI_Reduce_scatter every rank knows all sizes. Of the
 * others a rank knows its own: with COLLC_UNEVEN=1, on all ranks, the ranks tell each other before every call, or, of
 * nonblocking ones, as the first stage of the call (stages.c).
 */

/* Data are padded to at most as many times their size. */
enum { CIP_PADDED = 4 };

/* The blocks of one side of a call: one count for each, or one count (`counts` is NULL) for the only one. Counts and
 * places are ints, or numbers of 64 bits where the call is one with `large` counts. */
struct cip_blocks {
    void *data;
    int64_t count;
    const void *counts, *places;
    MPI_Datatype type;
    int large;
    const MPI_Datatype *types; /* of MPI_Alltoallw: one for each block, and places in bytes; else NULL */
    int far;                   /* whether places have 64 bits though counts do not */
};

/* The blocks of one side: one block, or one for each rank at a place of its own. */
#define CIP_ONE(large, data, count, type) \
    {(void *)(data), (large) ? (int64_t)(count) : (int)(count), NULL, NULL, (MPI_Datatype)(type), large, NULL, 0}
#define CIP_EACH(large, data, counts, places, type) \
    {(void *)(data), 0, (const void *)(counts), (const void *)(places), (MPI_Datatype)(type), large, NULL, 0}
#define CIP_EACH_TYPE(large, far, data, counts, places, types) \
    {(void *)(data), 0, (const void *)(counts), (const void *)(places), MPI_DATATYPE_NULL, large, \
     (const MPI_Datatype *)(types), far}

typedef char cip_needs_counts_of_64_bits[sizeof(MPI_Count) == 8 && sizeof(MPI_Aint) == 8 ? 1 : -1];

enum { CIP_TO_ALL = -2 }; /* in place of a root: one block for all neighbours */

struct cip_uneven {
    int function, large, kind, root;
    struct cip_blocks out, in; /* what is sent, and received */
    MPI_Op op;
    MPI_Comm comm;
};

/* What a rank knows of a call: its largest block and all its data in bytes, and what stands against serving it. */
struct cip_known {
    int64_t most, all, end;
};

enum { CIP_KNOWN = 3 }; /* numbers in it */

static int64_t cip_number(const void *numbers, int large, int k)
{
    return large ? ((const int64_t *)numbers)[k] : ((const int *)numbers)[k];
}

static int64_t cip_place_of(const struct cip_blocks *blocks, int k)
{
    return cip_number(blocks->places, blocks->large | blocks->far, k);
}

static int64_t cip_count_of(const struct cip_blocks *blocks, int k)
{
    return blocks->counts == NULL ? blocks->count : cip_number(blocks->counts, blocks->large, k);
}

static MPI_Datatype cip_type_of(const struct cip_blocks *blocks, int k)
{
    return blocks->types == NULL ? blocks->type : blocks->types[k];
}

/* Adds the sizes of `number` blocks to what is known. */
static void cip_measure(const struct cip_blocks *blocks, int number, struct cip_known *known)
{
    int k;

    for (k = 0; k < number; k++) {
        int64_t bytes = cip_count_of(blocks, k), size;

        if (blocks->types != NULL && bytes == 0)
            continue; /* some programs have no type for a block without data */
        size = cip_size(cip_type_of(blocks, k));
        if (size < 0 || bytes < 0 || (size > 0 && bytes > INT64_MAX / 4096 / size)) {
            known->end = CIP_WRONG;
            return;
        }
        bytes *= size;
        known->all += bytes;
        if (bytes > known->most)
            known->most = bytes;
    }
}

/* How many blocks a rank sends and receives. */
static int cip_sends(const struct cip_uneven *call, int rank, int ranks)
{
    if (call->kind == CIP_SCATTER)
        return rank == call->root ? ranks : 0;
    return call->kind == CIP_ALLTOALL || call->kind == CIP_REDUCE_SCATTER ? ranks : 1;
}

static int cip_receives(const struct cip_uneven *call, int rank, int ranks)
{
    if (call->kind == CIP_GATHER)
        return rank == call->root ? ranks : 0;
    return call->kind == CIP_ALLTOALL || call->kind == CIP_ALLGATHER ? ranks : 1;
}

/* Whether the lists of a side mean something on a rank. */
static int cip_matters(const struct cip_uneven *call, const struct cip_blocks *side, int rank)
{
    if (call->kind == CIP_ALLTOALL)
        return side == &call->in || call->out.data != MPI_IN_PLACE;
    if (call->kind == CIP_GATHER && side == &call->in)
        return rank == call->root;
    return call->kind != CIP_SCATTER || side == &call->in || rank == call->root;
}

/* What this rank knows before the ranks tell each other. */
static struct cip_known cip_know(const struct cip_uneven *call, int rank, int ranks)
{
    struct cip_known known = {0, 0, CIP_SERVED}, at_root = known;
    int in_place = call->out.data == MPI_IN_PLACE || call->in.data == MPI_IN_PLACE;

    switch (call->kind) {
    case CIP_ALLGATHER:
        cip_measure(&call->in, ranks, &known);
        if (!in_place && cip_size(call->out.type) * call->out.count != cip_size(call->in.type) * cip_count_of(&call->in, rank))
            known.end = CIP_WRONG;
        break;
    case CIP_REDUCE_SCATTER:
        cip_measure(&call->out, ranks, &known);
        if (known.end == CIP_SERVED)
            known.end = cip_judge_op(call->op, call->out.type);
        if (known.end == CIP_SERVED && !cip_dense(call->out.type))
            known.end = CIP_OTHER_TYPE;
        break;
    case CIP_ALLTOALL:
        cip_measure(in_place ? &call->in : &call->out, ranks, &known);
        break;
    case CIP_GATHER:
        if (call->out.data != MPI_IN_PLACE)
            cip_measure(&call->out, 1, &known);
        if (rank == call->root && known.end == CIP_SERVED)
            cip_measure(&call->in, ranks, &at_root);
        break;
    default:
        if (call->in.data != MPI_IN_PLACE)
            cip_measure(&call->in, 1, &known);
        if (rank == call->root && known.end == CIP_SERVED)
            cip_measure(&call->out, ranks, &at_root);
    }
    if (at_root.most > known.most)
        known.most = at_root.most;
    if (at_root.end != CIP_SERVED)
        known.end = at_root.end;
    return known;
}

/* What all ranks know together; the same on all of them. */
static struct cip_known cip_combine(const struct cip_known *of_all, int ranks)
{
    struct cip_known known = of_all[0];
    int k;

    for (k = 1; k < ranks; k++) {
        known.all += of_all[k].all;
        if (of_all[k].most > known.most)
            known.most = of_all[k].most;
        if (of_all[k].end > known.end)
            known.end = of_all[k].end;
    }
    return known;
}

static struct cip_known cip_tell_all(struct cip_known known, int ranks, MPI_Comm comm)
{
    struct cip_known few[64], *of_all = ranks <= 64 ? few : malloc((size_t)ranks * sizeof *of_all);

    if (of_all == NULL) {
        fprintf(stderr, "collc: no memory for the sizes of %d ranks\n", ranks);
        MPI_Abort(comm, MPI_ERR_NO_MEM);
    }
    if (MPI_Allgather(&known, CIP_KNOWN, MPI_INT64_T, of_all, CIP_KNOWN, MPI_INT64_T, comm) != MPI_SUCCESS)
        known.end = CIP_WRONG;
    else
        known = cip_combine(of_all, ranks);
    if (of_all != few)
        free(of_all);
    return known;
}

/* Whether ranks have to tell each other their sizes. */
static int cip_tells(const struct cip_uneven *call)
{
    return call->kind != CIP_ALLGATHER && call->kind != CIP_REDUCE_SCATTER && call->kind != CIP_NEIGHBOURS;
}

/* A call without its data, to find its algorithm. */
static struct cip_call cip_frame(const struct cip_uneven *call)
{
    struct cip_call even = {call->function, call->kind, NULL, NULL, 0, 0, call->out.type, call->in.type, call->op,
                            call->root, call->comm, 0};

    return even;
}

/* Says whether a call may be one for us, before its sizes are known: CIP_OTHER_BYTES where they decide. */
static enum cip_end cip_judge_frame(const struct cip_uneven *call, struct cip_entry **entry, int *rank, int *ranks)
{
    struct cip_call even = cip_frame(call);
    enum cip_end end = cip_judge_comm(call->comm, rank, ranks);

    return end == CIP_SERVED ? cip_choose(&even, *ranks, -1, entry) : end;
}

/* Says whether a call is one for us, by what all ranks know. */
static enum cip_end cip_judge_known(const struct cip_uneven *call, struct cip_known known, int ranks,
                                    struct cip_entry **entry)
{
    struct cip_call even = cip_frame(call);
    enum cip_end end = (enum cip_end)known.end;

    if (end != CIP_SERVED)
        return end;
    if (known.most == 0)
        return CIP_NOTHING_TO_DO;
    if ((double)known.most * ranks * (call->kind == CIP_ALLTOALL ? ranks : 1) > (double)CIP_PADDED * known.all)
        return CIP_UNEQUAL;
    end = cip_choose(&even, ranks, known.most * ranks, entry);
    return end == CIP_SERVED && known.most > (*entry)->most ? CIP_TOO_LARGE : end;
}

/* Says whether a call is one for us, as all ranks say; waits for them where they have to tell their sizes. */
static enum cip_end cip_judge_uneven(const struct cip_uneven *call, struct cip_entry **entry, int *rank, int64_t *most)
{
    struct cip_known known;
    int ranks = 0;
    enum cip_end end = cip_judge_frame(call, entry, rank, &ranks);

    if (end != CIP_OTHER_BYTES)
        return end;
    if (cip_tells(call) && !cip_all.uneven)
        return CIP_NEEDS_UNEVEN;
    known = cip_know(call, *rank, ranks);
    if (cip_tells(call))
        known = cip_tell_all(known, ranks, call->comm);
    *most = known.most;
    return cip_judge_known(call, known, ranks, entry);
}

/* Packs or unpacks the blocks of a side, `step` bytes apart. */
static int cip_carry_blocks(const struct cip_blocks *blocks, int number, char *memory, int64_t step, int unpack,
                            MPI_Comm comm)
{
    int64_t place = 0;
    int error = MPI_SUCCESS, k;

    for (k = 0; k < number && error == MPI_SUCCESS; k++) {
        int64_t count = cip_count_of(blocks, k), size = 0;
        MPI_Datatype type = cip_type_of(blocks, k);
        MPI_Aint lb, extent = 0;

        if (count > 0) {
            size = cip_size(type);
            error = MPI_Type_get_extent(type, &lb, &extent);
        }
        if (size > 0 && error == MPI_SUCCESS) {
            int64_t at = blocks->places == NULL ? place : cip_place_of(blocks, k);

            error = cip_pack((char *)blocks->data + at * (blocks->types == NULL ? extent : 1), count, type,
                             memory + k * step, unpack, comm);
        }
        place += count; /* blocks without places stand one after the other */
        if (!unpack && error == MPI_SUCCESS)
            memset(memory + k * step + count * size, 0, (size_t)(step - count * size));
    }
    return error;
}

/* The blocks that a rank sends; of a call in place, those that stand where it receives. */
static struct cip_blocks cip_sent(const struct cip_uneven *call, int rank)
{
    struct cip_blocks sent = call->out;

    if (sent.data != MPI_IN_PLACE)
        return sent;
    if (call->kind == CIP_REDUCE_SCATTER) {
        sent.data = call->in.data;
        return sent;
    }
    sent = call->in;
    if (call->kind == CIP_ALLTOALL)
        return sent;
    sent.count = cip_count_of(&call->in, rank);
    sent.counts = NULL;
    sent.places = (const char *)sent.places + rank * (sent.large ? sizeof(int64_t) : sizeof(int));
    return sent;
}

/* What a rank packs and unpacks. */
struct cip_sides {
    struct cip_blocks sent, got;
    int sends, receives; /* numbers of blocks */
    int sums, stays;     /* of MPI_Scatterv in place, the root's block stays */
};

static struct cip_sides cip_sides_of(const struct cip_uneven *call, int rank, int ranks)
{
    struct cip_sides sides = {cip_sent(call, rank), call->in, cip_sends(call, rank, ranks), 0,
                              call->kind == CIP_REDUCE_SCATTER, call->in.data == MPI_IN_PLACE};

    sides.receives = sides.stays ? 0 : cip_receives(call, rank, ranks);
    if (sides.sums) {
        sides.got.count = cip_count_of(&sides.got, rank);
        sides.got.counts = NULL;
    }
    return sides;
}

/* The elements of a block: those of the type, or bytes. */
static int64_t cip_units(const struct cip_uneven *call, int64_t most)
{
    return call->kind == CIP_REDUCE_SCATTER ? most / cip_size(call->out.type) : most;
}

static MPI_Datatype cip_unit(const struct cip_uneven *call)
{
    return call->kind == CIP_REDUCE_SCATTER ? call->out.type : MPI_BYTE;
}

/* Carries out a call that was judged to be one for us; `most` are the bytes of the largest block. */
static int cip_carry_uneven(const struct cip_uneven *call, const struct cip_entry *entry, int rank, int64_t most)
{
    struct cip_double *with = cip_private(call->comm);
    struct cip_sides sides = cip_sides_of(call, rank, entry->ranks);
    struct cip_work work;
    int error;
    char *own;

    if (with == NULL)
        return CIP_NOT_BEGUN;
    memset(&work, 0, sizeof work);
    work.send_blocks = sides.sends;
    work.recv_blocks = sides.receives;
    work.packs_in = sides.sends > 0;
    work.packs_out = sides.receives > 0;
    if (!cip_find_room(with, most, &work, 2 * entry->ranks * most, &own))
        return CIP_NOT_BEGUN;
    error = cip_carry_blocks(&sides.sent, sides.sends, work.in, most, 0, with->comm);
    if (error == MPI_SUCCESS)
        error = entry->call(work.in, sides.stays ? MPI_IN_PLACE : work.out, cip_units(call, most), cip_unit(call),
                            call->op, call->root, with->comm);
    if (error == MPI_SUCCESS)
        error = cip_carry_blocks(&sides.got, sides.receives, work.out, most, 1, with->comm);
    free(own);
    return error;
}

/* Carries out a call if it is one for us: 1, with the error that it returns; else 0. */
static int cip_serve_uneven(const struct cip_uneven *call, int *error)
{
    struct cip_entry *entry = NULL;
    enum cip_end end;
    int64_t most = 0;
    int rank = 0;

    if (!cip_is_on())
        return 0;
    *error = MPI_SUCCESS;
    end = cip_judge_uneven(call, &entry, &rank, &most);
    if (end == CIP_SERVED) {
        cip_depth++;
        *error = cip_carry_uneven(call, entry, rank, most);
        cip_depth--;
        if (*error == CIP_NOT_BEGUN) /* the program's MPI may do with less memory */
            end = CIP_NO_MEMORY;
    }
    return cip_conclude_call(call->function, call->large, end, call->comm, *error);
}
