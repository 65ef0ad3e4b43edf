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

/* Bytes of working memory for calls up to those that a grant is for; SIZE_MAX for more than can be counted. */
static size_t room(struct operation *it, const struct grant *grant)
{
    struct grant own = {it->call.span, it->call.single};
    struct arena arena = {NULL, 0};

    it->call.span = grant->span;
    it->call.single = grant->single;
    lay_out(it, &arena);
    it->call.span = own.span;
    it->call.single = own.single;
    return arena.used;
}

/* Cells of working memory that the ranks of an algorithm need, the most of any. */
static int64_t most_cells(const struct call *call)
{
    int row = algorithm_row[call->algorithm], end = row + call->plan->ranks, id;
    int64_t most = 0;

    for (; row < end; row++) {
        int64_t cells = rank_scratch[row];

        for (id = rank_blocks[row]; id < rank_blocks[row + 1]; id++)
            cells += (int64_t)block_slots[id] * block_slot_chunks[id];
        most = cells > most ? cells : most;
    }
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
    if (it->lane == NULL)
        return 0;
    if (cells == 0) {
        grant->span = grant->single = INT64_MAX;
        return 1;
    }
    before = &it->lane->grants[call->algorithm];
    most = it->lane == &context->lanes[context->at_once] ? KEPT_BYTES : KEPT_BYTES_EACH;
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

    if (it->form == PERSISTENT || (it->form == BEGUN && it->context->credit == 0))
        return 0;
    grant = &it->lane->grants[it->call.algorithm];
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

/* Gets the memory for a call; returns what this rank offers. */
static int equip(struct operation *it)
{
    struct context *context = it->context;
    struct grant grant;
    int kept = widen(it, &grant);

    it->bytes = room(it, &grant);
    it->lends = kept && it->bytes > it->lane->promised;
    if (it->bytes == SIZE_MAX || it->destitute)
        return 0;
    if ((!kept || it->lends) && (it->memory = malloc(it->bytes > 0 ? it->bytes : 1)) == NULL)
        return 0;
    if (it->form == PERSISTENT && context->assigned >= context->tags &&
        (it->page = malloc(sizeof *it->page)) == NULL)
        return 0;
    return it->form == BEGUN ? 1 + provide(it) : 1;
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

    if (it->form == BEGUN)
        context->credit = agreed ? context->offered - 1 : 0;
    if (agreed && it->lane != NULL) {
        struct grant grant;

        if (widen(it, &grant))
            it->lane->grants[it->call.algorithm] = grant;
        if (it->lends)
            it->lane->promised = it->bytes;
    }
    settle(it, agreed);
}

/* Goes on with the votes; sets *moved where calls came to be agreed on, or not. */
static int decide(struct context *context, int *moved)
{
    int error = cast_late_votes(context, moved), done;

    while (error == MPI_SUCCESS && context->refused == 0 && context->undecided != NULL) {
        struct operation *it = context->undecided;

        if (context->vote == MPI_REQUEST_NULL && granted(it)) {
            context->credit -= it->form == BEGUN;
            settle(it, 1);
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
