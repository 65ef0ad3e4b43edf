/* ---- Calls under way --------------------------------------------------------------------------- */

enum { FRUITLESS_POLLS = 20 };

/* An error in one call leaves messages behind, and all calls on the communicator without an end. */
static void give_up(struct context *context, int error)
{
    struct operation *it = context->under_way;

    context->failure = error;
    context->under_way = NULL;
    for (; it != NULL; it = it->next) {
        /* better a leak than a message out of memory that has a new use */
        if (it->state == RUNNING && abandon(&it->engine))
            it->memory = NULL;
        it->error = error;
        it->state = COMPLETE;
    }
}

/* Whether a call's tags are free: those of calls begun before it, and not done, are others. */
static int may_set_out(const struct context *context, const struct operation *it)
{
    const struct operation *before = context->under_way;

    while (before != it && (before->call.tag != it->call.tag || before->call.comm != it->call.comm))
        before = before->next;
    return before == it;
}

static int set_out(struct operation *it)
{
    struct engine *engine = &it->engine;
    int k;

    it->state = RUNNING;
    engine->call = &it->call;
    engine->in_flight = 0;
    engine->stirred = 1;
    for (k = 0; k < engine->num_blocks; k++) {
        struct block *block = &engine->blocks[k];

        block->step = block_steps[block->id];
        block->end = block_steps[block->id + 1];
        block->wait = block_waits[block->id];
        block->phase = READY;
        block->slot = -1;
        block->sending = 0;
        memset(block->taken, 0, (size_t)block_slots[block->id]);
    }
    if (!it->call.copy_input)
        return MPI_SUCCESS;
    return copy(&it->call, it->source, it->call.base[INPUT], it->call.copy_input);
}

/* Goes as far as can be gone with a call; returns whether it is done. */
static int proceed(struct context *context, struct operation *it, int *moved)
{
    int error = MPI_SUCCESS;

    if (it->state == QUEUED) {
        if (!may_set_out(context, it))
            return 0;
        error = set_out(it);
    }
    if (error == MPI_SUCCESS)
        error = execute(&it->engine, moved);
    if (error == MPI_SUCCESS && it->engine.in_flight > 0)
        return 0;
    if (error == MPI_SUCCESS && it->call.keep_output && it->call.deliver != NULL)
        error = copy(&it->call, it->aside, it->call.deliver, it->call.keep_output);
    it->error = error;
    return 1;
}

/* Goes on with all calls on a communicator, which the caller has locked; returns whether there was
 * anything to do. */
static int work(struct context *context)
{
    struct operation **link = &context->under_way;
    int moved = 0;

    while (*link != NULL) {
        struct operation *it = *link;

        if (!proceed(context, it, &moved)) {
            link = &it->next;
            continue;
        }
        if (it->error != MPI_SUCCESS) {
            give_up(context, it->error);
            return 1;
        }
        *link = it->next;
        it->state = COMPLETE;
        moved = 1;
    }
    return moved;
}

/* Whoever waits goes on with the calls on other communicators too: the rank that it waits for may be
 * waiting for those. Communicators that another thread works on are left to that. */
static void work_elsewhere(const struct context *here)
{
    struct context *context;

    lock(&contexts_busy);
    for (context = contexts; context != NULL; context = context->next) {
        if (context == here || !PADLOCK_TRY(&context->busy))
            continue;
        if (context->under_way != NULL) {
            unlock(&contexts_busy);
            work(context);
            lock(&contexts_busy);
        }
        unlock(&context->busy);
    }
    unlock(&contexts_busy);
}

/* Begins a call that was arranged. */
static int commence(struct operation *it)
{
    struct context *context = it->context;
    struct operation **link;
    int error;

    it->active = 1;
    it->error = MPI_SUCCESS;
    it->next = NULL;
    it->state = COMPLETE;
    if (context == NULL)
        return MPI_SUCCESS;
    lock(&context->busy);
    it->error = context->failure;
    if (it->error == MPI_SUCCESS) {
        if (!it->persistent) {
            it->call.comm = context->original->comm;
            it->call.tag = context->turn * (CHANNELS + 1);
            context->turn = (context->turn + 1) % context->at_once;
        }
        for (link = &context->under_way; *link != NULL; link = &(*link)->next)
            continue;
        *link = it;
        it->state = QUEUED;
        work(context);
    }
    error = it->state == COMPLETE ? it->error : MPI_SUCCESS;
    it->active = error == MPI_SUCCESS;
    unlock(&context->busy);
    return error;
}

/* Goes on with a call once; returns whether it is done. */
static int look(struct operation *it, int *moved)
{
    int done;

    if (it->context == NULL)
        return 1;
    lock(&it->context->busy);
    *moved = it->state == COMPLETE || work(it->context);
    done = it->state == COMPLETE;
    unlock(&it->context->busy);
    return done;
}

/* Waits, polling as MPIs do, but giving way to other processes: with more ranks than cores some MPIs'
 * own waiting lets the last rank wait for the end of everybody's time slice. */
static int await(struct operation *it)
{
    int moved = 0, polls = 0;

    while (!look(it, &moved)) {
        polls = moved ? 0 : polls + 1;
        if (polls < FRUITLESS_POLLS)
            continue;
        work_elsewhere(it->context);
        GIVE_WAY();
    }
    return it->error;
}

/* The blocking form. */
static int perform(const struct plan *plan, const void *send, void *recv, int64_t count,
                   MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct operation it;
    int error = arrange(&it, plan, send, recv, count, type, op, comm);

    if (error != MPI_SUCCESS || it.context == NULL)
        return error;
    error = commence(&it);
    if (error == MPI_SUCCESS)
        error = await(&it);
    dismiss(&it);
    return error;
}

/* The tags of a persistent request are its own, so ranks may start such requests in any order. */
static int take_tags(struct operation *it, MPI_Comm comm)
{
    struct context *context = it->context;
    int error = MPI_SUCCESS;

    if (context == NULL)
        return MPI_SUCCESS;
    if (context->assigned >= context->lanes) {
        error = add_page(context, comm);
        context->assigned = 0;
    }
    it->call.comm = context->pages->comm;
    it->call.tag = context->assigned++ * (CHANNELS + 1);
    return error;
}

/* The other forms: makes a request, and begins it where it is not a persistent one. */
static int make_request(struct operation **request, int persistent, const struct plan *plan,
                        const void *send, void *recv, int64_t count, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm)
{
    struct operation *it;
    int error;

    *request = NULL;
    it = malloc(sizeof *it);
    if (it == NULL)
        return MPI_ERR_NO_MEM;
    error = arrange(it, plan, send, recv, count, type, op, comm);
    if (error == MPI_SUCCESS) {
        it->persistent = persistent;
        error = persistent ? take_tags(it, comm) : commence(it);
        if (error != MPI_SUCCESS)
            dismiss(it);
    }
    if (error != MPI_SUCCESS) {
        free(it);
        return error;
    }
    *request = it;
    return MPI_SUCCESS;
}
