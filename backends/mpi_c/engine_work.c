/* ---- Calls under way --------------------------------------------------------------------------- */

enum { FRUITLESS_POLLS = 20 };

/* An error in one call leaves messages behind, and all calls on the communicator without an end. */
static void give_up(struct context *context, int error)
{
    struct operation *it = context->under_way;

    context->failure = error;
    context->under_way = context->undecided = NULL;
    for (; it != NULL; it = it->next) {
        /* better a leak than a message out of memory that has a new use */
        if (it->state == RUNNING && abandon(&it->engine)) {
            if (it->memory == NULL)
                it->lane->memory = NULL;
            it->memory = NULL;
        }
#if COUNTS
        if (it->state == UNDECIDED && it->phase == LEARNING && context->vote != MPI_REQUEST_NULL) {
            if (it->lane != NULL)
                it->lane->ledger = NULL;
            it->ledger = NULL;
        }
#endif /* COUNTS */
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

/* The first element of a buffer. */
static struct place at(char *address, int packed)
{
    struct place place = {address, SCRATCH, packed, 0, 0};

    return place;
}

#if ROOTS
/* Copies the blocks of a root's buffer to the order of the plan's ranks, or back. */
static int shuffle(const struct call *call, int back)
{
    int packed = call->packed[call->shuffled], part, error = MPI_SUCCESS;
    char *own = call->base[call->shuffled];

    for (part = 0; part < call->plan->ranks && error == MPI_SUCCESS; part++) {
        int64_t here = taker_of(call->plan, call->root, part) * call->count;
        struct place theirs = at(element_at(call, call->ordered, here), 0);
        struct place ours = at((packed ? kept_at : element_at)(call, own, part * call->count), packed);

        error = back ? copy(call, &ours, &theirs, call->count) : copy(call, &theirs, &ours, call->count);
    }
    return error;
}

#endif /* ROOTS */
static int set_out(struct operation *it)
{
    struct engine *engine = &it->engine;
    struct place from, to;
    int k;

    it->state = RUNNING;
    if (it->form != PERSISTENT)
        settle_in(it);
    engine->call = &it->call;
    engine->in_flight = engine->by_mpi = 0;
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
#if COUNTS
    if (it->call.plan->shards > 0)
        return pack_blocks(&it->call);
#endif /* COUNTS */
#if ROOTS
    if (it->call.shuffled == INPUT)
        return shuffle(&it->call, 0);
#endif /* ROOTS */
    if (!it->call.copy_input)
        return MPI_SUCCESS;
    from = at(it->source, 0);
    to = at(it->call.base[INPUT], it->call.packed[INPUT]);
    return copy(&it->call, &from, &to, it->call.copy_input);
}

/* Copies what was built aside to where it is wanted. */
static int deliver(const struct call *call)
{
    struct place from = at(call->base[OUTPUT], call->packed[OUTPUT]), to = at(call->deliver, 0);

    return copy(call, &from, &to, call->keep_output);
}

/* Goes as far as can be gone with a call; returns whether it is done. */
static int proceed(struct context *context, struct operation *it, int *moved)
{
    int error = MPI_SUCCESS;

    if (it->state == UNDECIDED)
        return 0;
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
        error = deliver(&it->call);
#if ROOTS
    if (error == MPI_SUCCESS && it->call.shuffled == OUTPUT)
        error = shuffle(&it->call, 1);
#endif /* ROOTS */
#if COUNTS
    if (error == MPI_SUCCESS && it->call.plan->shards > 0)
        error = unpack_blocks(&it->call);
#endif /* COUNTS */
    it->error = error;
    return 1;
}

/* Goes on with a call; returns whether it is under way afterwards. After an error no call on the communicator is. */
static int carry_on(struct context *context, struct operation **link, int *moved)
{
    struct operation *it = *link;

    if (!proceed(context, it, moved))
        return 1;
    *moved = 1;
    if (it->error != MPI_SUCCESS) {
        give_up(context, it->error);
        return 0;
    }
    *link = it->next;
    it->state = COMPLETE;
    if (it->form == BEGUN) { /* the request may be kept for long */
        free(it->memory);
        it->memory = NULL;
    }
    return 0;
}

/* Goes on with all calls on a communicator, which the caller has locked; returns whether there was
 * anything to do. */
static int work(struct context *context)
{
    struct operation **link = &context->under_way;
    int moved = 0, error = decide(context, &moved);

    if (error != MPI_SUCCESS) {
        give_up(context, error);
        return 1;
    }
    while (context->under_way != NULL && *link != NULL)
        if (carry_on(context, link, &moved))
            link = &(*link)->next;
    return moved;
}

/* Goes on with a blocking call that is the only one on its communicator, while its messages come soon: without a look
 * at everything else between two polls. */
static void hurry(struct context *context, struct operation *it)
{
    int polls = 0;

    while (context->under_way == it && it->next == NULL && it->state == RUNNING && polls < FRUITLESS_POLLS) {
        int moved = 0;

        if (!carry_on(context, &context->under_way, &moved))
            return;
        polls = moved ? 0 : polls + 1;
    }
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
        if (context->under_way != NULL || context->refused > 0) {
            unlock(&contexts_busy);
            work(context);
            lock(&contexts_busy);
        }
        unlock(&context->busy);
    }
    unlock(&contexts_busy);
}

/* The lane of the next call of a form. */
static int take_turn(struct context *context, enum form form)
{
    int turn = context->turn;

    if (form == BLOCKING && context->tags > context->at_once)
        return context->at_once;
    context->turn = (turn + 1) % context->at_once;
    return turn;
}

/* A call whose turn it is, and of which the ranks have yet to agree. */
static void queue(struct operation *it)
{
    struct context *context = it->context;
    int turn;

    if (context->undecided == NULL)
        context->undecided = it;
    if (it->form == PERSISTENT)
        return;
    turn = take_turn(context, it->form);
    it->lane = &context->lanes[turn];
    it->call.comm = context->original.comm;
    it->call.tag = turn * (CHANNELS + 1);
    if (turn == context->at_once && context->mail.base != NULL)
        it->call.mail = &context->mail;
}

/* Begins a call that was arranged, or makes a persistent request (UNDECIDED), or begins its call (QUEUED). */
static int commence(struct operation *it, enum state state)
{
    struct context *context = it->context;
    struct operation **link;
    int error;

    it->active = 1;
    it->next = NULL;
    it->state = COMPLETE;
    lock(&context->busy);
    it->error = context->failure;
    if (it->error == MPI_SUCCESS) {
        for (link = &context->under_way; *link != NULL; link = &(*link)->next)
            continue;
        *link = it;
        it->state = state;
        if (state == UNDECIDED)
            queue(it);
        work(context);
        if (it->form == BLOCKING)
            hurry(context, it);
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

#if EVEN
/* The blocking form. */
#if ROOTS
static int perform(const struct plan *plan, int root, const void *send, void *recv, int64_t count,
                   MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct operation it;
    int error = arrange(&it, plan, root, send, recv, count, type, op, comm);
#else /* ROOTS */
static int perform(const struct plan *plan, const void *send, void *recv, int64_t count,
                   MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct operation it;
    int error = arrange(&it, plan, send, recv, count, type, op, comm);
#endif /* ROOTS */

    if (error != MPI_SUCCESS || it.context == NULL)
        return error;
    error = commence(&it, UNDECIDED);
    if (error == MPI_SUCCESS)
        error = await(&it);
    dismiss(&it);
    return error;
}

#endif /* EVEN */
#if COUNTS
/* The blocking form with counts. */
static int perform_counts(const struct plan *plan, const struct arguments *given, MPI_Comm comm)
{
    struct operation it;
    int error = arrange_counts(&it, plan, given, comm);

    if (error != MPI_SUCCESS || it.context == NULL)
        return error;
    error = commence(&it, UNDECIDED);
    if (error == MPI_SUCCESS)
        error = await(&it);
    dismiss(&it);
    return error;
}

#endif /* COUNTS */
/* ---- Requests ---------------------------------------------------------------------------------- */

/* Requests of calls where there is nothing to do: they need no memory, so no rank fails to make them. */
static struct operation empty_call = {.form = BEGUN, .active = 1};
static struct operation empty_request = {.form = PERSISTENT};
static struct operation empty_start = {.form = PERSISTENT, .active = 1};

/* There is no request for a nonblocking call: it takes part in the votes, by being refused. */
static void refuse(struct context *context)
{
    struct operation *it = context->undecided, *last = NULL;

    for (; it != NULL; it = it->next)
        if (it->state == UNDECIDED)
            last = it;
    *(last != NULL ? &last->refused : &context->refused) += 1;
    take_turn(context, BEGUN);
    do
        work(context);
    while (context->refused > LATE_VOTES);
}

/* Takes a request; NULL where there is none. */
static struct operation *take_request(struct context *context)
{
    struct operation *it = NULL;

    lock(&context->busy);
    if (context->failure == MPI_SUCCESS && context->spare == NULL && !restock(context))
        refuse(context);
    if (context->spare != NULL) {
        it = context->spare;
        context->spare = it->next;
        context->spares--;
    }
    unlock(&context->busy);
    return it;
}

/* The nonblocking form of a call that was arranged. */
static int begin_request(struct operation *arranged, struct operation **request)
{
    struct operation *it = take_request(arranged->context);
    int error;

    if (it == NULL) {
        error = arranged->context->failure;
        dismiss(arranged);
        return error == MPI_SUCCESS ? MPI_ERR_NO_MEM : error;
    }
    *it = *arranged;
    it->form = BEGUN;
    error = commence(it, UNDECIDED);
    if (error == MPI_SUCCESS)
        *request = it;
    else
        dismiss(it);
    return error;
}

/* The tags of a persistent request are its own, so ranks may start such requests in any order. */
static int take_tags(struct operation *it, MPI_Comm comm)
{
    struct context *context = it->context;
    int error = MPI_SUCCESS;

    if (it->page != NULL)
        error = add_page(context, it->page, comm);
    it->page = NULL;
    if (error != MPI_SUCCESS)
        return error;
    it->call.comm = context->pages->comm;
    it->call.tag = context->assigned++ * (CHANNELS + 1);
    return error;
}

/* The persistent form; collective, and waiting. */
static int init_request(struct operation *arranged, MPI_Comm comm, struct operation **request)
{
    struct operation *it = malloc(sizeof *it);
    int error;

    arranged->form = PERSISTENT;
    arranged->destitute = it == NULL;
    error = commence(arranged, UNDECIDED);
    if (error == MPI_SUCCESS)
        error = await(arranged);
    if (error == MPI_SUCCESS)
        error = take_tags(arranged, comm);
    if (error != MPI_SUCCESS || it == NULL) {
        dismiss(arranged);
        free(it);
        return error;
    }
    *it = *arranged;
    it->active = 0;
    settle_in(it);
    *request = it;
    return MPI_SUCCESS;
}

#if COUNTS
/* The other forms with counts. */
static int request_counts(struct operation **request, int persistent, const struct plan *plan,
                          const struct arguments *given, MPI_Comm comm)
{
    struct operation it;
    int error = arrange_counts(&it, plan, given, comm);

    *request = NULL;
    if (error != MPI_SUCCESS)
        return error;
    if (it.context == NULL) {
        *request = persistent ? &empty_request : &empty_call;
        return MPI_SUCCESS;
    }
    return persistent ? init_request(&it, comm, request) : begin_request(&it, request);
}

#endif /* COUNTS */
#if EVEN
/* The other forms: makes a request, and begins it where it is not a persistent one. */
#if ROOTS
static int make_request(struct operation **request, int persistent, const struct plan *plan, int root,
                        const void *send, void *recv, int64_t count, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm)
{
    struct operation it;
    int error = arrange(&it, plan, root, send, recv, count, type, op, comm);
#else /* ROOTS */
static int make_request(struct operation **request, int persistent, const struct plan *plan,
                        const void *send, void *recv, int64_t count, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm)
{
    struct operation it;
    int error = arrange(&it, plan, send, recv, count, type, op, comm);
#endif /* ROOTS */

    *request = NULL;
    if (error != MPI_SUCCESS)
        return error;
    if (it.context == NULL) {
        *request = persistent ? &empty_request : &empty_call;
        return MPI_SUCCESS;
    }
    return persistent ? init_request(&it, comm, request) : begin_request(&it, request);
}
#endif /* EVEN */
