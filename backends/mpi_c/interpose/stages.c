/* ---- Calls in stages ------------------------------------------------------------------------------------------------
 *
 * Of some nonblocking calls with a count for each rank, ranks have to tell each other their sizes first. The call must not
 * wait for that, so it is its first stage: a nonblocking call of the MPI. When it is done, the thread begins the call
 * by an algorithm, or by the MPI's own function, as all ranks say. It does so in the order of the program's calls, and
 * on a communicator of its own: the program may begin others on the first one meanwhile, on each rank at another time.
 */

/* Whether all calls before this one on its communicator have been begun. Only the thread ends a stage. */
static int cip_is_next(const struct cip_operation *it)
{
    const struct cip_operation *before;

    cip_begin_work();
    for (before = cip_worker.active; before != it; before = before->next)
        if (before->stage == CIP_TELLING && before->staged == it->staged)
            break;
    cip_end_work();
    return before == it;
}

#if MPI_VERSION >= 4
static int cip_leave_large(struct cip_operation *it)
{
    const struct cip_uneven *call = &it->uneven;
    const struct cip_blocks *out = &call->out, *in = &call->in;

    switch (call->function) {
    case CIP_MPI_IALLTOALLV:
        return MPI_Ialltoallv_c(out->data, out->counts, out->places, out->type, in->data, in->counts, in->places,
                                in->type, it->staged, &it->own);
    case CIP_MPI_IALLTOALLW:
        return MPI_Ialltoallw_c(out->data, out->counts, out->places, out->types, in->data, in->counts, in->places,
                                in->types, it->staged, &it->own);
    case CIP_MPI_IGATHERV:
        return MPI_Igatherv_c(out->data, out->count, out->type, in->data, in->counts, in->places, in->type, call->root,
                              it->staged, &it->own);
    default:
        return MPI_Iscatterv_c(out->data, out->counts, out->places, out->type, in->data, in->count, in->type,
                               call->root, it->staged, &it->own);
    }
}
#endif

/* Hands a call to the MPI. */
static int cip_leave(struct cip_operation *it)
{
    const struct cip_uneven *call = &it->uneven;
    const struct cip_blocks *out = &call->out, *in = &call->in;

#if MPI_VERSION >= 4
    if (call->large)
        return cip_leave_large(it);
#endif
    switch (call->function) {
    case CIP_MPI_IALLTOALLV:
        return MPI_Ialltoallv(out->data, out->counts, out->places, out->type, in->data, in->counts, in->places,
                              in->type, it->staged, &it->own);
    case CIP_MPI_IALLTOALLW:
        return MPI_Ialltoallw(out->data, out->counts, out->places, out->types, in->data, in->counts, in->places,
                              in->types, it->staged, &it->own);
    case CIP_MPI_IGATHERV:
        return MPI_Igatherv(out->data, (int)out->count, out->type, in->data, in->counts, in->places, in->type,
                            call->root, it->staged, &it->own);
    default:
        return MPI_Iscatterv(out->data, out->counts, out->places, out->type, in->data, (int)in->count, in->type,
                             call->root, it->staged, &it->own);
    }
}

/* Begins a call of which the sizes are known. */
static int cip_decide(struct cip_operation *it)
{
    struct cip_known known = cip_combine(it->of_all, it->ranks);
    enum cip_end end = cip_judge_known(&it->uneven, known, it->ranks, &it->entry);
    int error;

    cip_count(it->uneven.function, it->uneven.large, end);
    it->most = known.most;
    if (end == CIP_SERVED) {
        cip_make_room(it, known.most);
        error = cip_pack_now(it);
        if (error == MPI_SUCCESS)
            error = cip_begin_operation(it, known.most, it->staged);
    } else {
        error = cip_leave(it);
    }
    cip_begin_work();
    it->stage = end == CIP_SERVED ? CIP_CARRIED : CIP_LEFT;
    cip_end_work();
    return error;
}

/* Goes on with a call once. */
static int cip_advance(struct cip_operation *it, int *done, int *moved)
{
    int error = MPI_SUCCESS;

    if (it->stage == CIP_CARRIED)
        return it->entry->test(&it->request, done, moved);
    if (it->own != MPI_REQUEST_NULL) {
        error = MPI_Test(&it->own, moved, MPI_STATUS_IGNORE);
        if (error == MPI_SUCCESS && !*moved)
            return MPI_SUCCESS;
    }
    if (error == MPI_SUCCESS && it->stage == CIP_TELLING) {
        if (!cip_is_next(it))
            return MPI_SUCCESS;
        *moved = 1;
        error = cip_decide(it);
        *done = error != MPI_SUCCESS;
        return error;
    }
    *done = 1;
    return error;
}

/* Begins a call of which the ranks have to tell each other their sizes. */
static int cip_begin_telling(struct cip_operation *it, const struct cip_double *with, MPI_Request *handle)
{
    int error = MPI_Irecv(NULL, 0, MPI_BYTE, 0, it->tag, cip_worker.self, &it->handle);

    it->stage = CIP_TELLING;
    it->staged = with->staged;
    it->own = MPI_REQUEST_NULL;
    it->known = cip_know(&it->uneven, it->rank, it->ranks);
    it->of_all = malloc((size_t)it->ranks * sizeof *it->of_all);
    if (it->of_all == NULL) {
        fprintf(stderr, "collc: no memory for the sizes of %d ranks\n", it->ranks);
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    }
    if (error == MPI_SUCCESS)
        error = MPI_Iallgather(&it->known, CIP_KNOWN, MPI_INT64_T, it->of_all, CIP_KNOWN, MPI_INT64_T, with->comm,
                               &it->own);
    return cip_return(it, error, handle);
}

/* Waits until all calls on a communicator that is to be freed are begun: they need its double for that. All ranks have
 * made them, or will without waiting for this one, as freeing a communicator is collective. */
static void cip_await_stages(const MPI_Comm *comm)
{
    const struct timespec pause = {0, CIP_SLEEP};
    const struct cip_operation *it;

    while (cip_worker.runs && cip_depth == 0) {
        cip_begin_work();
        for (it = cip_worker.active; it != NULL; it = it->next)
            if (it->stage == CIP_TELLING && it->call.comm == *comm)
                break;
        cip_end_work();
        if (it == NULL)
            return;
        nanosleep(&pause, NULL);
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

/* Says whether a call with a count for each rank may be one for us, without asking other ranks. */
static enum cip_end cip_judge_later(const struct cip_uneven *call, struct cip_entry **entry, int *rank, int *ranks,
                                    int64_t *most)
{
    enum cip_end end;

    if (call->kind == CIP_NEIGHBOURS)
        return cip_judge_around(call, rank, ranks);
    end = cip_judge_frame(call, entry, rank, ranks);
    if (end != CIP_OTHER_BYTES)
        return end;
    if (!cip_tells(call))
        return cip_judge_uneven(call, entry, rank, most);
    return cip_all.uneven ? CIP_SERVED : CIP_NEEDS_UNEVEN;
}

/* Whether a call of neighbours, or another, has its algorithm. Without a double this rank says it alone. */
static enum cip_end cip_judge_halo(const struct cip_uneven *call, const struct cip_double *with, struct cip_entry **entry)
{
    struct cip_halo alone;

    memset(&alone, 0, sizeof alone);
    if (with == NULL)
        cip_find_halo(call->comm, MPI_COMM_NULL, &alone);
    *entry = with == NULL ? alone.entry : with->halo.entry;
    cip_leave_around(&alone);
    return *entry == NULL ? CIP_OTHER_NEIGHBOURS : CIP_SERVED;
}

/* What stands against a call that is for us where it is not to wait. */
static enum cip_end cip_judge_means(enum cip_end end, MPI_Comm comm, struct cip_double **with)
{
    if (!cip_all.nonblocking)
        return end == CIP_SERVED ? CIP_NEEDS_NONBLOCKING : end == CIP_NEEDS_UNEVEN ? CIP_NEEDS_BOTH : end;
    if (end != CIP_SERVED)
        return end;
    if (!cip_has_worker())
        return CIP_NO_THREADS;
    *with = cip_double_of(comm);
    return *with == NULL ? CIP_NO_DOUBLE : CIP_SERVED;
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
    int rank = 0, ranks = 0, tells = uneven != NULL && cip_tells(uneven);
    int meets = uneven != NULL && uneven->kind == CIP_NEIGHBOURS;

    if (!cip_is_on())
        return 0;
    end = uneven == NULL ? cip_judge(call, &entry, &rank, &block)
                         : cip_judge_later(uneven, &entry, &rank, &ranks, &block);
    end = cip_judge_means(end, call->comm, &with);
    if (meets && (end == CIP_SERVED || end == CIP_NEEDS_NONBLOCKING) &&
        cip_judge_halo(uneven, with, &entry) != CIP_SERVED)
        end = CIP_OTHER_NEIGHBOURS;
    if (end == CIP_SERVED && tells && persistent) /* making it may wait */
        end = cip_judge_uneven(uneven, &entry, &rank, &block);
    *error = MPI_SUCCESS;
    if (end == CIP_SERVED) {
        struct cip_operation *it = cip_make_operation(call, entry, rank, persistent);

        it->meets = meets;
        if (meets)
            cip_meet(&it->neighbours, uneven, &with->halo);
        else if (uneven != NULL)
            cip_keep(it, uneven, ranks);
        it->most = block;
        cip_depth++;
        if (tells && !persistent)
            *error = cip_begin_telling(it, with, handle);
        else
            *error = (persistent ? cip_prepare : cip_launch)(it, block, with->comm, handle);
        cip_depth--;
        if (tells && !persistent && *error == MPI_SUCCESS)
            return 1; /* counted when the sizes are known */
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
