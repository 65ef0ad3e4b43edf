/* ---- Carrying them out ------------------------------------------------------------------------------- */

static int cip_reduce(const struct cip_call *call, const struct cip_entry *entry, int rank, MPI_Comm comm)
{
    const void *send = call->send;

    /* The same buffer twice: MPI forbids it, and who does it means it in place. */
    if (send == call->recv && (call->kind != CIP_REDUCE || rank == call->root))
        send = MPI_IN_PLACE;
    return entry->call(send, call->recv, call->send_count, call->send_type, call->op, call->root, comm);
}

/* How a type was made, -1 where that is not known; and of a contiguous or duplicated type what it is made of. */
static int cip_combiner(MPI_Datatype type, MPI_Datatype *inner)
{
    int combiner, integers[1], error;
    MPI_Aint addresses[1];
#if MPI_VERSION >= 4
    MPI_Count numbers[4], counts[1];

    error = MPI_Type_get_envelope_c(type, &numbers[0], &numbers[1], &numbers[2], &numbers[3], &combiner);
#else
    int numbers[3];

    error = MPI_Type_get_envelope(type, &numbers[0], &numbers[1], &numbers[2], &combiner);
#endif
    if (error != MPI_SUCCESS)
        return -1;
    if (inner == NULL || (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP))
        return combiner;
#if MPI_VERSION >= 4
    error = MPI_Type_get_contents_c(type, numbers[0], numbers[1], numbers[2], numbers[3], integers, addresses,
                                    counts, inner);
#else
    error = MPI_Type_get_contents(type, numbers[0], numbers[1], numbers[2], integers, addresses, inner);
#endif
    return error == MPI_SUCCESS ? combiner : -1;
}

/* Whether elements are bytes one after the other, in the order in which they are sent. */
static int cip_dense(MPI_Datatype type)
{
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    MPI_Aint lb, extent;
    int dense, combiner;

    if (MPI_Type_get_extent(type, &lb, &extent) != MPI_SUCCESS || lb != 0 || extent != cip_size(type))
        return 0;
    combiner = cip_combiner(type, &inner);
    if (inner == MPI_DATATYPE_NULL)
        return combiner == MPI_COMBINER_NAMED;
    dense = cip_dense(inner);
    combiner = cip_combiner(inner, NULL);
    if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
        combiner != MPI_COMBINER_F90_COMPLEX && combiner != MPI_COMBINER_F90_INTEGER)
        MPI_Type_free(&inner); /* a handle of our own */
    return dense;
}

/* Copies elements into bytes one after the other, or from there. */
static int cip_pack(void *elements, int64_t count, MPI_Datatype type, char *bytes, int unpack, MPI_Comm comm)
{
    int64_t size = cip_size(type);
    int error = MPI_SUCCESS;
#if MPI_VERSION >= 4
    MPI_Count position = 0;

    if (unpack)
        error = MPI_Unpack_c(bytes, count * size, &position, elements, count, type, comm);
    else
        error = MPI_Pack_c(elements, count, type, bytes, count * size, &position, comm);
#else
    MPI_Aint lb, extent;
    int64_t done = 0, most = INT_MAX / size;

    error = MPI_Type_get_extent(type, &lb, &extent);
    while (done < count && error == MPI_SUCCESS) {
        int now = (int)(count - done < most ? count - done : most), position = 0;
        char *at = (char *)elements + done * extent;

        if (unpack)
            error = MPI_Unpack(bytes + done * size, (int)(now * size), &position, at, now, type, comm);
        else
            error = MPI_Pack(at, now, type, bytes + done * size, (int)(now * size), &position, comm);
        done += now;
    }
#endif
    return error;
}

/* What a call that moves data does on a rank. Data are bytes: where they are, or packed in memory of ours. */
struct cip_work {
    int sends, receives; /* whether this rank has data to send, and receives some */
    int in_place, stays; /* its data stand where they are received; of a scatter, they stay */
    int dense_out;
    int64_t send_blocks, recv_blocks;
    int packs_in, packs_out; /* whether they are packed */
    char *in, *out;
};

static void cip_plan(const struct cip_call *call, int rank, int64_t block, int blocks, struct cip_work *work)
{
    int at_root = cip_rooted(call) && rank == call->root, kind = call->kind;

    work->in_place = call->send == MPI_IN_PLACE && kind != CIP_BROADCAST;
    work->stays = kind == CIP_SCATTER && at_root && call->recv == MPI_IN_PLACE;
    work->sends = kind == CIP_BROADCAST ? 0 : kind == CIP_SCATTER ? at_root : 1;
    work->receives = kind == CIP_GATHER ? at_root : kind == CIP_SCATTER ? !work->stays : 1;
    work->send_blocks = kind == CIP_ALLTOALL || kind == CIP_SCATTER ? blocks : 1;
    work->recv_blocks = kind == CIP_SCATTER || kind == CIP_BROADCAST ? 1 : blocks;
    work->dense_out = work->receives ? cip_dense(call->recv_type) : 1;
    work->in = work->out = NULL;
    work->packs_out = !work->dense_out;
    if (work->receives && work->dense_out)
        work->out = call->recv;
    work->packs_in = work->sends && work->in_place && !work->dense_out;
    if (!work->sends || work->in_place)
        return;
    work->in = (char *)call->send;
    work->packs_in = call->send == call->recv || !cip_dense(call->send_type);
    if (!work->packs_in && work->dense_out && work->receives && kind != CIP_SCATTER && work->send_blocks == 1 &&
        work->in == work->out + rank * block)
        work->in = NULL; /* it is where in place would have it */
}

/* Working memory up to this size is kept, on all ranks, whether or not they pack: whose types have gaps, the others
 * cannot know. */
enum { CIP_KEPT = 1 << 22 };

/* Memory for packing, for which *own is to be freed; 0 on all ranks where one of them has none. Collective where all have
 * to get more, and where it is not kept: those calls are so large that asking takes no time. */
static int cip_find_room(struct cip_double *with, int64_t block, struct cip_work *work, int64_t most, char **own)
{
    int64_t into = work->packs_in ? work->send_blocks * block : 0;
    int64_t all = into + (work->packs_out ? work->recv_blocks * block : 0);
    char *memory = with->memory;

    *own = NULL;
    if (most > with->capacity) {
        int kept = most <= CIP_KEPT;
        int64_t wanted = kept ? 2 * most : all;

        if (wanted > 0)
            *own = memory = malloc((size_t)wanted);
        if (cip_fails_anywhere(with->comm, wanted > 0 && memory == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS)) {
            free(*own);
            return 0;
        }
        if (kept) {
            free(with->memory);
            with->memory = memory;
            with->capacity = wanted;
            *own = NULL;
        }
    }
    if (work->packs_in)
        work->in = memory;
    if (work->packs_out)
        work->out = memory + into;
    return 1;
}

/* Packs what is to be sent. */
static int cip_pack_all(const struct cip_call *call, int rank, const struct cip_work *work, MPI_Comm comm)
{
    int64_t count = call->recv_count;
    MPI_Aint lb, extent;
    char *from = call->recv;
    int error;

    if (call->kind == CIP_BROADCAST && work->packs_out && rank == call->root)
        return cip_pack(call->recv, count, call->recv_type, work->out, 0, comm);
    if (!work->packs_in)
        return MPI_SUCCESS;
    if (!work->in_place)
        return cip_pack((void *)call->send, work->send_blocks * call->send_count, call->send_type, work->in, 0, comm);
    /* What stands in place: our block of it, or all. */
    error = MPI_Type_get_extent(call->recv_type, &lb, &extent);
    if (error != MPI_SUCCESS)
        return error;
    if (work->send_blocks == 1)
        from += rank * count * extent;
    return cip_pack(from, work->send_blocks * count, call->recv_type, work->in, 0, comm);
}

/* Collectives that move data, as bytes. Types that are not dense are packed and unpacked. */
static int cip_move(const struct cip_call *call, const struct cip_entry *entry, int rank, int64_t block,
                    struct cip_double *with)
{
    struct cip_work work;
    char *own;
    int error;

    cip_plan(call, rank, block, entry->ranks, &work);
    if (!cip_find_room(with, block, &work, (work.send_blocks + work.recv_blocks) * block, &own))
        return CIP_NOT_BEGUN;
    error = cip_pack_all(call, rank, &work, with->comm);
    if (error == MPI_SUCCESS)
        error = entry->call(call->kind == CIP_BROADCAST             ? NULL
                            : work.sends && work.in == NULL ? MPI_IN_PLACE
                                                            : work.in,
                            work.stays ? MPI_IN_PLACE : work.out, block, MPI_BYTE, MPI_OP_NULL, call->root,
                            with->comm);
    if (error == MPI_SUCCESS && work.packs_out && !(call->kind == CIP_BROADCAST && rank == call->root))
        error = cip_pack(call->recv, work.recv_blocks * call->recv_count, call->recv_type, work.out, 1, with->comm);
    free(own);
    return error;
}

/* What was found out for a call that was served: the next of this thread is often like it, and is judged alike. */
struct cip_habit {
    struct cip_call call; /* its buffers do not matter, but for MPI_IN_PLACE */
    int freed;            /* communicators by then */
    struct cip_entry *entry; /* NULL: nothing yet */
    struct cip_double *with;
    int rank;
    int64_t block;
};

enum { CIP_HABITS = 16 };
static __thread struct cip_habit cip_habits[CIP_HABITS];

static int cip_are_alike(const struct cip_call *a, const struct cip_call *b)
{
    return a->kind == b->kind && a->comm == b->comm && a->send_count == b->send_count &&
           a->recv_count == b->recv_count && a->send_type == b->send_type && a->recv_type == b->recv_type &&
           a->op == b->op && a->root == b->root && a->unequal == b->unequal &&
           (a->send == MPI_IN_PLACE) == (b->send == MPI_IN_PLACE) &&
           (a->recv == MPI_IN_PLACE) == (b->recv == MPI_IN_PLACE);
}

/* Whether a handle names the same object for ever: it is predefined, or none. */
static int cip_lasts(MPI_Datatype type)
{
    return type == MPI_DATATYPE_NULL || cip_combiner(type, NULL) == MPI_COMBINER_NAMED;
}

static struct cip_habit *cip_habit_of(const struct cip_call *call)
{
    return &cip_habits[((uint64_t)call->kind * 3 + (uint64_t)call->send_count) % CIP_HABITS];
}

/* Carries out a call that was judged to be one for us. */
static int cip_carry_out(const struct cip_call *call, struct cip_entry *entry, int rank, int64_t block,
                         struct cip_double *with)
{
    int lasts = with != NULL; /* as before */

    if (with == NULL) {
        with = cip_private(call->comm);
        if (with == NULL)
            return CIP_NOT_BEGUN;
        lasts = (!cip_reduces(call) || cip_classes_of(call->op) >= 0) && cip_lasts(call->send_type) &&
                cip_lasts(call->recv_type);
        if (lasts) {
            struct cip_habit *habit = cip_habit_of(call), fresh = {*call, cip_all.freed, entry, with, rank, block};

            *habit = fresh;
        }
    }
    if (cip_all.tune != NULL && cip_loses(call, entry, rank, block, with, lasts || !cip_reduces(call)))
        return CIP_NOT_FASTER;
    return cip_reduces(call) ? cip_reduce(call, entry, rank, with->comm) : cip_move(call, entry, rank, block, with);
}

static void cip_count(int function, int large, enum cip_end end)
{
    __sync_fetch_and_add(&cip_all.ends[large][function][end], 1);
}

/* Counts a call, and tells of its error; returns whether it was served. */
static int cip_conclude_call(int function, int large, enum cip_end end, MPI_Comm comm, int error)
{
    cip_count(function, large, end);
    if (end != CIP_SERVED)
        return 0;
    if (error != MPI_SUCCESS)
        MPI_Comm_call_errhandler(comm, error);
    return 1;
}

/* Carries out a call if it is one for us: 1, with the error that it returns; else 0. */
static int cip_serve(const struct cip_call *call, int large, int *error)
{
    const struct cip_habit *habit = cip_habit_of(call);
    struct cip_double *with = NULL;
    struct cip_entry *entry = NULL;
    enum cip_end end;
    int64_t block = 0;
    int rank = 0;

    if (!cip_is_on())
        return 0;
    *error = MPI_SUCCESS;
    if (habit->entry != NULL && cip_depth == 0 && habit->freed == cip_all.freed && cip_are_alike(&habit->call, call)) {
        entry = habit->entry;
        with = habit->with;
        rank = habit->rank;
        block = habit->block;
        end = CIP_SERVED;
    } else {
        end = cip_judge(call, &entry, &rank, &block);
    }
    if (end == CIP_SERVED) {
        cip_depth++;
        *error = cip_carry_out(call, entry, rank, block, with);
        cip_depth--;
        if (*error == CIP_NOT_BEGUN) /* the program's MPI may do with less memory */
            end = CIP_NO_MEMORY;
        else if (*error == CIP_NOT_FASTER)
            end = CIP_SLOWER;
    }
    return cip_conclude_call(call->function, large, end, call->comm, *error);
}
