/* ---- Beginning nonblocking and persistent calls ----------------------------------------------------------------- */

/* Memory for packing. Without it this rank cannot take part, and the others would wait for it. */
static void cip_make_room(struct cip_operation *it, int64_t block)
{
    struct cip_work *work = &it->work;
    int64_t into, all;

    if (it->is_uneven) {
        struct cip_sides sides = cip_sides_of(&it->uneven, it->rank, it->ranks);

        block = it->most;
        work->packs_in = work->packs_out = 1;
        work->send_blocks = sides.sends;
        work->recv_blocks = sides.receives;
        work->stays = sides.stays;
    } else if (it->meets || cip_reduces(&it->call)) {
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

    if (it->meets)
        return it->entry->exchange(&it->neighbours.exchange, comm, it->persistent ? CIP_AGAIN : CIP_ONCE, &it->request);
    if (it->is_uneven)
        return it->entry->begin(work->in, work->stays ? MPI_IN_PLACE : work->out, cip_units(&it->uneven, it->most), cip_unit(&it->uneven), call->op,
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
    if (it->meets)
        return cip_repack(&it->neighbours, 0);
    if (it->is_uneven) {
        struct cip_sides sides = cip_sides_of(&it->uneven, it->rank, it->ranks);

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

/* The end of beginning a call. */
static int cip_return(struct cip_operation *it, int error, MPI_Request *handle)
{
    if (error != MPI_SUCCESS) {
        cip_release(it);
        return error;
    }
    *handle = it->handle;
    cip_hand_over(it);
    return MPI_SUCCESS;
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
    return cip_return(it, error, handle);
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

/* The MPI's request of a persistent call is started first: the thread answers it. The handle is inout, so an MPI may change
 * it.
 */
static int cip_start_one(MPI_Request *request)
{
    static int (*next)(MPI_Request *);
    struct cip_operation *it = cip_persistent(*request);
    int error;

    if (next == NULL)
        next = (int (*)(MPI_Request *))cip_behind("PMPI_Start", 0);
    error = next(request);
    if (it == NULL || error != MPI_SUCCESS)
        return error;
    it->handle = *request;
    return cip_start(it);
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

/* Copies `ranks` things of a size, for which there is room; NULL stays NULL. */
static const void *cip_copy(const void *list, int ranks, size_t size, char **room)
{
    char *copy = *room;

    if (list == NULL)
        return NULL;
    memcpy(copy, list, (size_t)ranks * size);
    *room += (size_t)ranks * sizeof(int64_t);
    return copy;
}

typedef char cip_needs_types_of_64_bits[sizeof(MPI_Datatype) <= sizeof(int64_t) ? 1 : -1];

/* Makes an operation one with a count for each rank. */
static void cip_keep(struct cip_operation *it, const struct cip_uneven *uneven, int ranks)
{
    size_t size = uneven->large ? sizeof(int64_t) : sizeof(int);
    struct cip_blocks *sides[2];
    char *room = it->lists = malloc(6 * (size_t)ranks * sizeof(int64_t));
    int k;

    if (room == NULL) {
        fprintf(stderr, "collc: no memory for the counts of a nonblocking call\n");
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    }
    it->is_uneven = 1;
    it->ranks = ranks;
    it->uneven = *uneven;
    sides[0] = &it->uneven.out;
    sides[1] = &it->uneven.in;
    for (k = 0; k < 2; k++) {
        int matters = cip_matters(&it->uneven, sides[k], it->rank);

        sides[k]->counts = cip_copy(matters ? sides[k]->counts : NULL, ranks, size, &room);
        sides[k]->places = cip_copy(matters ? sides[k]->places : NULL, ranks, size, &room);
        sides[k]->types = cip_copy(matters ? sides[k]->types : NULL, ranks, sizeof(MPI_Datatype), &room);
    }
}
