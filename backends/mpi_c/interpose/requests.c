/* ---- Beginning nonblocking and persistent calls ----------------------------------------------------------------- */

/* Memory for packing. Without it this rank cannot take part, and the others would wait for it. */
static void cip_make_room(struct cip_operation *it, int64_t block)
{
    struct cip_work *work = &it->work;
    int64_t into, all;

    if (it->is_uneven) {
        struct cip_sides sides = cip_sides_of(&it->uneven, it->rank, it->entry->ranks);

        block = it->most;
        work->packs_in = work->packs_out = 1;
        work->send_blocks = sides.sends;
        work->recv_blocks = sides.receives;
    } else if (cip_reduces(&it->call)) {
        return;
    } else {
        cip_plan(&it->call, it->rank, block, it->entry->ranks, work);
    }
    into = work->packs_in ? work->send_blocks * block : 0;
    all = into + (work->packs_out ? work->recv_blocks * block : 0);
    if (all == 0)
        return;
    it->memory = malloc((size_t)all);
    if (it->memory == NULL) {
        fprintf(stderr, "collc: no memory for the data of a nonblocking call: %lld bytes\n", (long long)all);
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    }
    if (work->packs_in)
        work->in = it->memory;
    if (work->packs_out)
        work->out = it->memory + into;
}

/* Begins a call of the engine, or makes a persistent one. */
static int cip_begin_operation(struct cip_operation *it, int64_t block, MPI_Comm comm)
{
    const struct cip_call *call = &it->call;
    const struct cip_work *work = &it->work;
    const void *send = call->send;

    if (it->is_uneven)
        return it->entry->begin(work->in, work->out, cip_units(&it->uneven, it->most), cip_unit(&it->uneven), call->op,
                                call->root, comm, it->persistent, &it->request);
    if (cip_reduces(call)) {
        if (send == call->recv && (call->kind != CIP_REDUCE || it->rank == call->root))
            send = MPI_IN_PLACE;
        return it->entry->begin(send, call->recv, call->send_count, call->send_type, call->op, call->root, comm,
                                it->persistent, &it->request);
    }
    send = call->kind == CIP_BROADCAST ? NULL : work->sends && work->in == NULL ? MPI_IN_PLACE : work->in;
    return it->entry->begin(send, work->stays ? MPI_IN_PLACE : work->out, block, MPI_BYTE, MPI_OP_NULL, call->root,
                            comm, it->persistent, &it->request);
}

static int cip_pack_now(struct cip_operation *it)
{
    if (it->is_uneven) {
        struct cip_sides sides = cip_sides_of(&it->uneven, it->rank, it->entry->ranks);

        return cip_carry_blocks(&sides.sent, sides.sends, it->memory, it->most, 0, MPI_COMM_SELF);
    }
    return cip_reduces(&it->call) ? MPI_SUCCESS : cip_pack_all(&it->call, it->rank, &it->work, MPI_COMM_SELF);
}

static struct cip_operation *cip_make_operation(const struct cip_call *call, struct cip_entry *entry, int rank,
                                                int persistent)
{
    struct cip_operation *it = calloc(1, sizeof *it);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;

    if (it == NULL) {
        fprintf(stderr, "collc: no memory for a nonblocking call\n");
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
        return NULL;
    }
    it->call = *call;
    it->entry = entry;
    it->rank = rank;
    it->persistent = persistent;
    it->fatal = 1;
    if (MPI_Comm_get_errhandler(call->comm, &handler) == MPI_SUCCESS) {
        it->fatal = handler == MPI_ERRORS_ARE_FATAL;
        if (handler != MPI_ERRHANDLER_NULL)
            MPI_Errhandler_free(&handler);
    }
    cip_begin_work();
    it->tag = cip_next_tag();
    if (persistent) {
        it->next = cip_worker.idle;
        cip_worker.idle = it;
    }
    cip_end_work();
    return it;
}

/* Begins a call that was judged to be one for us. */
static int cip_launch(struct cip_operation *it, int64_t block, MPI_Comm comm, MPI_Request *handle)
{
    int error = MPI_Irecv(NULL, 0, MPI_BYTE, 0, it->tag, cip_worker.self, &it->handle);

    cip_make_room(it, block);
    if (error == MPI_SUCCESS)
        error = cip_pack_now(it);
    if (error == MPI_SUCCESS)
        error = cip_begin_operation(it, block, comm);
    if (error != MPI_SUCCESS) {
        cip_release(it);
        return error;
    }
    *handle = it->handle;
    cip_hand_over(it);
    return MPI_SUCCESS;
}

/* Makes a persistent call that was judged to be one for us. */
static int cip_prepare(struct cip_operation *it, int64_t block, MPI_Comm comm, MPI_Request *handle)
{
    int error = MPI_Recv_init(NULL, 0, MPI_BYTE, 0, it->tag, cip_worker.self, &it->handle);

    cip_make_room(it, block);
    if (error == MPI_SUCCESS)
        error = cip_begin_operation(it, block, comm);
    *handle = it->handle;
    return error;
}

#if CIP_PERSISTENT
/* The persistent call behind a request, or NULL. */
static struct cip_operation *cip_persistent(MPI_Request handle)
{
    struct cip_operation *it;

    if (!cip_worker.runs || cip_depth > 0)
        return NULL;
    cip_begin_work();
    for (it = cip_worker.idle; it != NULL && it->handle != handle; it = it->next)
        ;
    cip_end_work();
    return it;
}

/* After the request of the MPI was started. */
static int cip_start(struct cip_operation *it)
{
    int error;

    cip_depth++;
    error = cip_pack_now(it);
    if (error == MPI_SUCCESS)
        error = it->entry->start(it->request);
    cip_depth--;
    if (error == MPI_SUCCESS)
        cip_hand_over(it);
    return error;
}

static void cip_forget(struct cip_operation *it)
{
    cip_depth++;
    cip_begin_work();
    cip_unlink(&cip_worker.idle, it);
    it->entry->forget(it->request);
    cip_release(it);
    cip_free_held();
    cip_end_work();
    cip_depth--;
}
#endif

static const int64_t *cip_copy(const struct cip_blocks *blocks, const void *numbers, int ranks, int64_t *copy)
{
    int k;

    for (k = 0; k < ranks; k++)
        copy[k] = cip_number(blocks, numbers, k);
    return copy;
}

/* Makes an operation one with a count for each rank. */
static void cip_keep(struct cip_operation *it, const struct cip_uneven *uneven, int64_t most)
{
    struct cip_blocks *sides[2];
    int ranks = it->entry->ranks, k;
    int64_t *copy = it->numbers = malloc(4 * (size_t)ranks * sizeof *it->numbers);

    if (copy == NULL) {
        fprintf(stderr, "collc: no memory for the counts of a nonblocking call\n");
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    }
    it->is_uneven = 1;
    it->uneven = *uneven;
    it->most = most;
    sides[0] = &it->uneven.out;
    sides[1] = &it->uneven.in;
    for (k = 0; k < 2; k++, copy += 2 * ranks) {
        if (sides[k]->counts != NULL)
            sides[k]->counts = cip_copy(sides[k], sides[k]->counts, ranks, copy);
        if (sides[k]->places != NULL)
            sides[k]->places = cip_copy(sides[k], sides[k]->places, ranks, copy + ranks);
        sides[k]->large = 1;
    }
}

/* The double of a communicator that has one. The call must not wait, so it makes none. All ranks agree: doubles are
 * made in the order of collective calls. */
static struct cip_double *cip_double_of(MPI_Comm owner)
{
    void *found = NULL;
    int flag = 0;

    if (cip_all.key == MPI_KEYVAL_INVALID || MPI_Comm_get_attr(owner, cip_all.key, &found, &flag) != MPI_SUCCESS)
        return NULL;
    return flag ? found : NULL;
}

/* Begins a nonblocking call, or makes a persistent one, if it is one for us: 1, with the error that it returns; else 0.
 * Of one with a count for each rank, `uneven` has the data. */
static int cip_serve_later(const struct cip_call *call, const struct cip_uneven *uneven, int large, int persistent,
                           MPI_Request *handle, int *error)
{
    struct cip_entry *entry = NULL;
    struct cip_double *with = NULL;
    enum cip_end end;
    int64_t block = 0;
    int rank = 0;

    if (!cip_is_on() || !cip_all.nonblocking)
        return 0;
    end = uneven == NULL ? cip_judge(call, &entry, &rank, &block) : cip_judge_uneven(uneven, &entry, &rank, &block);
    if (end == CIP_SERVED && !cip_has_worker())
        end = CIP_NO_THREADS;
    if (end == CIP_SERVED && (with = cip_double_of(call->comm)) == NULL)
        end = CIP_NO_DOUBLE;
    *error = MPI_SUCCESS;
    if (end == CIP_SERVED) {
        struct cip_operation *it = cip_make_operation(call, entry, rank, persistent);

        if (uneven != NULL)
            cip_keep(it, uneven, block);
        cip_depth++;
        *error = (persistent ? cip_prepare : cip_launch)(it, block, with->comm, handle);
        cip_depth--;
    }
    return cip_conclude_call(call->function, large, end, call->comm, *error);
}

/* Gives a communicator that was just made its double, so that nonblocking calls need not wait for one. Collective. */
static void cip_welcome(MPI_Comm comm)
{
    struct cip_entry *entry;
    int ranks = 0, inter = 0, wanted = 0;

    if (!cip_is_on() || !cip_all.nonblocking || cip_depth > 0 || comm == MPI_COMM_NULL ||
        MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter || MPI_Comm_size(comm, &ranks) != MPI_SUCCESS)
        return;
    for (entry = cip_all.entries; entry != NULL; entry = entry->next)
        wanted |= entry->ranks == ranks;
    cip_depth++;
    if (wanted)
        cip_private(comm);
    cip_depth--;
}
