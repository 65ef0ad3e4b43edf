/* ---- Agreement on memory -------------------------------------------------------------------------
 *
 * A call that one rank has no memory for must end on all of them, before anybody has sent anything. Ranks
 * cannot ask each other in every call; so they agree, by a vote, on calls that need more memory than all
 * calls before, and these are the same on all ranks: calls are counted and measured by what is the same
 * everywhere, in the order in which they were begun. Votes are taken in that order, one at a time; calls
 * that need none follow those that wait for one. A vote is a nonblocking collective: nobody waits for it
 * but the calls.
 *
 * A nonblocking call needs a request as well, and ranks keep these for different times. So a vote on such
 * a call says how many more each rank has requests for, at once; the least of these is the credit, and when it
 * is used up there is a vote on the next call. A call for which a rank has no request, which is refused there,
 * is one without credit; the other ranks learn of it by the vote.
 */

enum { HANDLES = 64 };

/* Requests of nonblocking calls, which are used again. */
struct stock {
    struct stock *next;
    struct operation handles[HANDLES];
};

static void free_stocks(struct context *context)
{
    struct stock *stock = context->stocks, *next;

    for (; stock != NULL; stock = next) {
        next = stock->next;
        free(stock);
    }
}

/* More requests: 1, or 0 where there is no memory for them. */
static int restock(struct context *context)
{
    struct stock *stock = malloc(sizeof *stock);
    int k;

    if (stock == NULL)
        return 0;
    stock->next = context->stocks;
    context->stocks = stock;
    for (k = 0; k < HANDLES; k++) {
        stock->handles[k].next = context->spare;
        context->spare = &stock->handles[k];
    }
    context->spares += HANDLES;
    return 1;
}

#if ROOTS
/* What the layout of a call takes, the most for any part that this rank may have: calls of all roots share memory. */
static size_t measured(struct operation *it)
{
    struct call *call = &it->call;
    struct arena arena = {NULL, 0};
    int row = call->row, part;
    size_t most = 0;

    if (call->plan->roots < 0) {
        lay_out(it, &arena);
        return arena.used;
    }
    for (part = 0; part < call->plan->ranks; part++) {
        arena.used = 0;
        call->row = row - call->part + part;
        lay_out(it, &arena);
        most = arena.used > most ? arena.used : most;
    }
    call->row = row;
    return most;
}

#endif /* ROOTS */
/* Bytes of working memory for calls up to those that a grant is for; SIZE_MAX for more than can be counted. */
static size_t room(struct operation *it, const struct grant *grant)
{
#if COUNTS
    struct grant own = {it->call.span, it->call.single, it->call.whole};
#else /* COUNTS */
    struct grant own = {it->call.span, it->call.single};
#endif /* COUNTS */
#if ROOTS
    size_t used;
#else /* ROOTS */
    struct arena arena = {NULL, 0};
#endif /* ROOTS */

    it->call.span = grant->span;
    it->call.single = grant->single;
#if COUNTS
    it->call.whole = grant->whole;
#endif /* COUNTS */
#if ROOTS
    used = measured(it);
#else /* ROOTS */
    lay_out(it, &arena);
#endif /* ROOTS */
    it->call.span = own.span;
    it->call.single = own.single;
#if COUNTS
    it->call.whole = own.whole;
#endif /* COUNTS */
#if ROOTS
    return used;
#else /* ROOTS */
    return arena.used;
#endif /* ROOTS */
}

/* Cells of working memory that the ranks of an algorithm need, the most of any. */
static int64_t most_cells(const struct call *call)
{
#if RELAYS
    int row = algorithm_row[call->algorithm], end = row + call->plan->ranks + call->plan->relays, id;
#else /* RELAYS */
    int row = algorithm_row[call->algorithm], end = row + call->plan->ranks, id;
#endif /* RELAYS */
    int64_t most = 0;

#if GROUPS
    if (algorithm_sizes[call->algorithm] > 0)
#if ORBITS
        end = row + algorithm_width[call->algorithm];
#else /* ORBITS */
        end = row + 1;
#endif /* ORBITS */
#endif /* GROUPS */
    for (; row < end; row++) {
        int64_t cells = rank_scratch[row];

        for (id = rank_blocks[row]; id < rank_blocks[row + 1]; id++)
            cells += (int64_t)block_slots[id] * block_slot_chunks[id];
        most = cells > most ? cells : most;
    }
#if ROOTS
    most += call->shuffles ? call->chunks * call->plan->ranks : 0;
#endif /* ROOTS */
    return most + (call->aside ? call->chunks : 0);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What a call needs, with all that its lane was granted before; returns whether the memory for that is kept. The
 * same on all ranks. */
static int widen(const struct operation *it, struct grant *grant)
{
    const struct call *call = &it->call;
    const struct context *context = it->context;
    const struct grant *before;
    int64_t cells = most_cells(call), most;

    grant->span = call->span;
    grant->single = call->single;
#if COUNTS
    grant->whole = call->whole;
#endif /* COUNTS */
    if (it->lane == NULL)
        return 0;
#if COUNTS
    if (cells == 0 && call->plan->shards == 0) {
#else /* COUNTS */
    if (cells == 0) {
#endif /* COUNTS */
        grant->span = grant->single = INT64_MAX;
        return 1;
    }
    before = &it->lane->grants[call->algorithm];
    most = it->lane == &context->lanes[context->at_once] ? KEPT_BYTES : KEPT_BYTES_EACH;
#if COUNTS
    if (larger(call->whole, before->whole) > most / 2)
        return 0;
    grant->whole = larger(call->whole, before->whole);
    most -= 2 * grant->whole;
    if (cells == 0) {
        grant->span = INT64_MAX;
        grant->single = larger(call->single, before->single);
        return 1;
    }
#endif /* COUNTS */
    if (larger(call->span, before->span) + larger(call->single, before->single) > most / cells)
        return 0;
    grant->span = larger(call->span, before->span);
    grant->single = larger(call->single, before->single);
    return 1;
}

/* Whether all ranks know that they all have what a call needs. */
static int granted(const struct operation *it)
{
    const struct grant *grant;

#if COUNTS
    if (it->form == PERSISTENT || (it->form == BEGUN && it->phase != LEARNT && it->context->credit == 0))
        return 0;
    if (it->phase == UNKNOWN)
        return it->call.plan->shards <= it->lane->entries;
    grant = &it->lane->grants[it->call.algorithm];
    if (it->call.whole > grant->whole)
        return 0;
#else /* COUNTS */
    if (it->form == PERSISTENT || (it->form == BEGUN && it->context->credit == 0))
        return 0;
    grant = &it->lane->grants[it->call.algorithm];
#endif /* COUNTS */
    return it->call.span <= grant->span && it->call.single <= grant->single;
}

/* For how many nonblocking calls after this one there are requests here; -1 where no more can be had. */
static int provide(const struct operation *it)
{
    struct context *context = it->context;
    int calls = 0;

    for (; it->refused == 0 && it->next != NULL; it = it->next)
        calls += it->next->form == BEGUN;
    if (it->refused > 0)
        return calls;
    if (context->spares < HANDLES / 2 && !restock(context))
        return -1;
    return calls + context->spares;
}

#if COUNTS
/* Gets the memory for the sizes of shards; returns what this rank offers. */
static int equip_ledger(struct operation *it)
{
    int shards = it->call.plan->shards;

    if (it->destitute)
        return 0;
    if (it->lane == NULL || it->lane->entries < shards)
        if ((it->ledger = malloc((size_t)shards * sizeof *it->ledger)) == NULL)
            return 0;
    return it->form == BEGUN ? 1 + provide(it) : 1;
}

#endif /* COUNTS */
/* Gets the memory for a call; returns what this rank offers. */
static int equip(struct operation *it)
{
    struct context *context = it->context;
    struct grant grant;
#if COUNTS
    int kept;

    if (it->phase == UNKNOWN)
        return equip_ledger(it);
    kept = widen(it, &grant);
    it->call.bounded = kept;
    it->bytes = room(it, &grant);
    it->call.bounded = 0;
#else /* COUNTS */
    int kept = widen(it, &grant);

    it->bytes = room(it, &grant);
#endif /* COUNTS */
    it->lends = kept && it->bytes > it->lane->promised;
    if (it->bytes == SIZE_MAX || it->destitute)
        return 0;
    if ((!kept || it->lends) && (it->memory = malloc(it->bytes > 0 ? it->bytes : 1)) == NULL)
        return 0;
    if (it->form == PERSISTENT && context->assigned >= context->tags &&
        (it->page = malloc(sizeof *it->page)) == NULL)
        return 0;
#if COUNTS
    return it->form == BEGUN && it->phase == KNOWN ? 1 + provide(it) : 1;
#else /* COUNTS */
    return it->form == BEGUN ? 1 + provide(it) : 1;
#endif /* COUNTS */
}

/* Takes a call out of those under way. */
static void end(struct operation *it, int error)
{
    struct operation **link = &it->context->under_way;

    while (*link != it)
        link = &(*link)->next;
    *link = it->next;
    it->error = error;
    it->state = COMPLETE;
}

/* A call that was agreed on waits for its tags to be free; a persistent request, to be started. */
static void settle(struct operation *it, int agreed)
{
    struct context *context = it->context;
    struct operation *next = it->next;

#if COUNTS
    if (agreed && it->phase == UNKNOWN) {
        it->phase = LEARNING;
        return;
    }
#endif /* COUNTS */
    while (next != NULL && next->state != UNDECIDED)
        next = next->next;
    context->undecided = next;
    context->refused = it->refused;
    it->refused = 0;
    if (agreed && it->form != PERSISTENT) {
        it->state = QUEUED;
        return;
    }
    if (!agreed) {
        free(it->memory);
        free(it->page);
        it->memory = NULL;
        it->page = NULL;
        it->lends = 0;
    }
    end(it, agreed ? MPI_SUCCESS : MPI_ERR_NO_MEM);
}

/* What follows from the vote on a call. */
static void count_votes(struct context *context, struct operation *it)
{
    int agreed = context->offered > 0;

#if COUNTS
    if (it->form == BEGUN && it->phase != LEARNT)
        context->credit = agreed ? context->offered - 1 : 0;
    if (agreed && it->lane != NULL && it->phase == UNKNOWN) {
        if (it->lane->entries < it->call.plan->shards)
            it->lane->entries = it->call.plan->shards;
    } else if (agreed && it->lane != NULL) {
#else /* COUNTS */
    if (it->form == BEGUN)
        context->credit = agreed ? context->offered - 1 : 0;
    if (agreed && it->lane != NULL) {
#endif /* COUNTS */
        struct grant grant;

        if (widen(it, &grant))
            it->lane->grants[it->call.algorithm] = grant;
        if (it->lends)
            it->lane->promised = it->bytes;
    }
    settle(it, agreed);
}

#if COUNTS
static int may_set_out(const struct context *context, const struct operation *it);

/* Starts the exchange of the sizes of shards. */
static int ask(struct context *context, struct operation *it)
{
    struct call *call = &it->call;
    const struct plan *plan = call->plan;
    int in_row = plan->shards / plan->ranks;

    if (it->lane == NULL) {
        call->ledger = it->ledger;
    } else {
        if (it->ledger != NULL) {
            free(it->lane->ledger);
            it->lane->ledger = it->ledger;
            it->ledger = NULL;
        }
        call->ledger = it->lane->ledger;
    }
    it->asked = 1;
    enter_sizes(call);
    if (call->sizes == FROM_ROOT)
        return MPI_Ibcast(call->ledger, plan->shards, MPI_INT64_T, plan->root, context->original.comm,
                          &context->vote);
#if RELAYS
    if (call->sizes == FROM_HOLDERS || plan->relays > 0)
#else /* RELAYS */
    if (call->sizes == FROM_HOLDERS)
#endif /* RELAYS */
        return MPI_Iallreduce(MPI_IN_PLACE, call->ledger, plan->shards, MPI_INT64_T, MPI_MAX, context->original.comm,
                              &context->vote);
    return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, call->ledger, in_row, MPI_INT64_T,
                          context->original.comm, &context->vote);
}

/* Goes on with the exchange; sets *done where the sizes are known. */
static int learn(struct context *context, struct operation *it, int *done)
{
    int error = MPI_SUCCESS;

    *done = 0;
    if (!it->asked && it->lane != NULL && !may_set_out(context, it))
        return MPI_SUCCESS;
    if (!it->asked)
        error = ask(context, it);
    if (error == MPI_SUCCESS)
        error = MPI_Test(&context->vote, done, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS || !*done)
        return error;
    it->phase = LEARNT;
    size_up_shards(&it->call);
    return as_entered(&it->call) ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
}

#endif /* COUNTS */
/* Goes on with the votes; sets *moved where calls came to be agreed on, or not. */
static int decide(struct context *context, int *moved)
{
    int error = cast_late_votes(context, moved), done;

    while (error == MPI_SUCCESS && context->refused == 0 && context->undecided != NULL) {
        struct operation *it = context->undecided;

#if COUNTS
        if (it->phase == LEARNING) {
            error = learn(context, it, &done);
            if (error != MPI_SUCCESS || !done)
                return error;
            *moved = 1;
        }
        if (context->vote == MPI_REQUEST_NULL && granted(it)) {
            context->credit -= it->form == BEGUN && it->phase != LEARNT;
            settle(it, 1);
#else /* COUNTS */
        if (context->vote == MPI_REQUEST_NULL && granted(it)) {
            context->credit -= it->form == BEGUN;
            settle(it, 1);
#endif /* COUNTS */
        } else {
            if (context->vote == MPI_REQUEST_NULL)
                error = cast_vote(context, equip(it));
            if (error == MPI_SUCCESS)
                error = MPI_Test(&context->vote, &done, MPI_STATUS_IGNORE);
            if (error != MPI_SUCCESS || !done)
                return error;
            count_votes(context, it);
            *moved = 1;
        }
        error = cast_late_votes(context, moved);
    }
    return error;
}
