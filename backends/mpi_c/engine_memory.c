/* ---- The private communicator ------------------------------------------------------------------ */

enum { ALGORITHMS = sizeof algorithm_chunks / sizeof *algorithm_chunks };

/* Working memory up to these sizes is kept between calls: that of blocking calls, and of one of the
 * nonblocking calls that are carried out at a time. */
enum { KEPT_BYTES = 1 << 22, KEPT_BYTES_EACH = 1 << 20 };

/* A duplicate of the caller's communicator: our messages never meet the caller's. Persistent requests
 * have tags of their own; where those run out there is a further duplicate. */
struct page {
    MPI_Comm comm;
    struct page *next;
};

/* What no call of an algorithm may exceed unless all ranks agree that they have the memory. */
struct grant {
    int64_t span, single;
#if COUNTS
    int64_t whole;
#endif /* COUNTS */
};

/* Calls that have the same tags are carried out one after the other, in the same memory. */
struct lane {
    char *memory;
    size_t promised; /* its bytes, once the calls that were agreed on have set out */
    struct grant grants[ALGORITHMS]; /* the same on all ranks */
#if COUNTS
    int64_t *ledger; /* of the sizes of shards */
    int entries;     /* in it, once the calls that were agreed on have set out; the same on all ranks */
#endif /* COUNTS */
};

/* Votes on calls that were refused for want of memory, at a time. */
enum { LATE_VOTES = 64 };

struct operation;
struct stock;

/* Hangs as an attribute on every communicator that we were called with. */
struct context {
    MPI_Comm owner; /* MPI_COMM_NULL once that is freed */
    struct page *pages;   /* the newest first */
    struct page original; /* the oldest: of calls that are no persistent requests */
    int tags;     /* how many calls' tags there are in a page */
    int at_once;  /* the lanes of nonblocking calls, in turn; one for blocking calls follows if it can */
    int turn;     /* of the next nonblocking call */
    int assigned; /* tags of the newest page that are taken */
    int failure;  /* the error that left messages behind: no later call can be right */
    struct operation *under_way; /* in the order in which they were begun */
    int operations; /* that know this context */
    struct lane lanes[COLLC_AT_ONCE + 1];
    struct operation *undecided; /* the first of those under way of which the ranks have not agreed */
    int refused;     /* calls before that one which are not under way here, for want of memory */
    MPI_Request late[LATE_VOTES]; /* the votes on these, in turn */
    int least[LATE_VOTES], oldest, cast; /* their results, the oldest that is under way, and how many are */
    struct mail mail; /* of blocking calls */
    int credit;      /* nonblocking calls for which all ranks have requests yet; the same on all ranks */
    MPI_Request vote; /* the ranks' agreement on a call, under way */
    int offer, offered; /* what this rank has, and the least that any has */
    struct stock *stocks;    /* of requests of nonblocking calls */
    struct operation *spare; /* those that are free */
    int spares;
    padlock busy;
    struct context *next;
};

static int context_key = MPI_KEYVAL_INVALID, finalize_key = MPI_KEYVAL_INVALID;
static struct context *contexts;
static volatile int comms_freed; /* how many of the owners; handles may be given again */
static padlock contexts_busy = PADLOCK_OPEN; /* guards what stands above */

static void lock(padlock *it)
{
    while (!PADLOCK_TRY(it))
        GIVE_WAY();
}

static void unlock(padlock *it)
{
    PADLOCK_RELEASE(it);
}

/* Starts to agree on the next call: `offer` is 0 where this rank has no memory for it. */
static int cast_vote(struct context *context, int offer)
{
    context->offer = offer;
    return MPI_Iallreduce(&context->offer, &context->offered, 1, MPI_INT, MPI_MIN,
                          context->original.comm, &context->vote);
}

/* The votes on calls that were refused here: other ranks wait for them. All of them are begun, and then need nothing
 * of ours any more: this rank may never come here again. */
static int cast_late_votes(struct context *context, int *moved)
{
    static const int nothing = 0;
    int error = MPI_SUCCESS, done = 1;

    while (context->refused > 0 && done && error == MPI_SUCCESS) {
        while (context->cast < context->refused && context->cast < LATE_VOTES && error == MPI_SUCCESS) {
            int k = (context->oldest + context->cast++) % LATE_VOTES;

            error = MPI_Iallreduce(&nothing, &context->least[k], 1, MPI_INT, MPI_MIN,
                                   context->original.comm, &context->late[k]);
        }
        if (error == MPI_SUCCESS)
            error = MPI_Test(&context->late[context->oldest], &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || !done)
            break;
        context->oldest = (context->oldest + 1) % LATE_VOTES;
        context->cast--;
        context->refused--;
        *moved = 1;
    }
    return error;
}

/* At the end of a communicator; returns whether there is something left to wait for. */
static int votes_are_missing(struct context *context)
{
    int moved, error;

    if (context->failure != MPI_SUCCESS)
        return 0;
    error = cast_late_votes(context, &moved);
    if (error != MPI_SUCCESS)
        context->failure = error;
    return error == MPI_SUCCESS && context->refused > 0;
}

static void close_page(struct page *page)
{
    if (page->comm != MPI_COMM_NULL)
        MPI_Comm_free(&page->comm);
}

static void free_duplicates(struct context *context)
{
    struct page *page = context->pages;

    while (votes_are_missing(context))
        GIVE_WAY();
    /* After a failure messages may be left in there, and a new communicator could inherit them. */
    for (; page != NULL && context->failure == MPI_SUCCESS; page = page->next)
        close_page(page);
}

static void free_stocks(struct context *context);

/* Nobody may know the context any more. */
static void dispose(struct context *context)
{
    struct context **link = &contexts;
    struct page *page = context->pages;
    int k;

    lock(&context->busy); /* by a thread that looks whether anything here can go on */
    lock(&contexts_busy);
    while (*link != NULL && *link != context)
        link = &(*link)->next;
    if (*link == context)
        *link = context->next;
    unlock(&contexts_busy);
    free_duplicates(context);
    while (page != NULL && page != &context->original) {
        struct page *next = page->next;

        free(page);
        page = next;
    }
    for (k = 0; k <= COLLC_AT_ONCE; k++)
        free(context->lanes[k].memory);
#if COUNTS
    for (k = 0; k <= COLLC_AT_ONCE; k++)
        free(context->lanes[k].ledger);
#endif /* COUNTS */
    close_letters(&context->mail);
    free_stocks(context);
    if (context->vote == MPI_REQUEST_NULL && context->cast == 0) /* else the MPI may still write results */
        free(context);
}

/* The owner is being freed. Requests on it can still be completed. */
static int on_free(MPI_Comm comm, int key, void *attribute, void *extra)
{
    struct context *context = attribute;
    int left;

    (void)comm, (void)key, (void)extra;
    lock(&contexts_busy);
    comms_freed++;
    unlock(&contexts_busy);
    lock(&context->busy);
    context->owner = MPI_COMM_NULL;
    left = context->operations;
    unlock(&context->busy);
    if (left == 0)
        dispose(context);
    return MPI_SUCCESS;
}

static void vote_everywhere(void)
{
    struct context *context;
    int more = 1;

    lock(&contexts_busy);
    while (more) {
        more = 0;
        for (context = contexts; context != NULL; context = context->next)
            more |= votes_are_missing(context);
        GIVE_WAY();
    }
    unlock(&contexts_busy);
}

/* MPI_Finalize frees the attributes of MPI_COMM_SELF first, while communicators can still be freed:
 * the moment to let go of those whose owner, like MPI_COMM_WORLD, is never freed. */
static int on_finalize(MPI_Comm comm, int key, void *attribute, void *extra)
{
    struct context *context;

    (void)comm, (void)key, (void)attribute, (void)extra;
    vote_everywhere();
    do {
        lock(&contexts_busy);
        for (context = contexts; context != NULL; context = context->next)
            if (context->owner != MPI_COMM_NULL)
                break;
        unlock(&contexts_busy);
    } while (context != NULL &&
             MPI_Comm_delete_attr(context->owner, context_key) == MPI_SUCCESS);
    /* Requests that nobody freed can still be freed afterwards, but no longer their communicators. */
    lock(&contexts_busy);
    for (context = contexts; context != NULL; context = context->next) {
        if (context->under_way == NULL)
            free_duplicates(context);
        context->failure = MPI_ERR_COMM;
    }
    unlock(&contexts_busy);
    MPI_Comm_free_keyval(&context_key);
    MPI_Comm_free_keyval(&finalize_key);
    return MPI_SUCCESS;
}

static int create_keys(void)
{
    int error = MPI_SUCCESS;

    lock(&contexts_busy);
    if (context_key == MPI_KEYVAL_INVALID)
        error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &context_key, NULL);
    if (error == MPI_SUCCESS && finalize_key == MPI_KEYVAL_INVALID) {
        error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &finalize_key, NULL);
        if (error == MPI_SUCCESS)
            error = MPI_Comm_set_attr(MPI_COMM_SELF, finalize_key, NULL);
        if (error != MPI_SUCCESS && finalize_key != MPI_KEYVAL_INVALID)
            MPI_Comm_free_keyval(&finalize_key);
    }
    unlock(&contexts_busy);
    return error;
}

/* Returns the class of the worst error that any rank has, on all of them; collective, and waiting. */
static int agree(MPI_Comm comm, int error)
{
    int mine = MPI_SUCCESS, worst = MPI_SUCCESS;

    if (error != MPI_SUCCESS && MPI_Error_class(error, &mine) != MPI_SUCCESS)
        mine = MPI_ERR_OTHER;
    error = MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, comm);
    return error == MPI_SUCCESS ? worst : error;
}

/* Makes a page a duplicate of a communicator; collective over it. */
static int open_page(struct page *page, MPI_Comm comm)
{
    int error;

    page->comm = MPI_COMM_NULL;
    error = MPI_Comm_dup(comm, &page->comm);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_set_errhandler(page->comm, MPI_ERRORS_RETURN);
    return error;
}

/* Adds a duplicate of a communicator, on all ranks or on none; collective over it. Takes the page. */
static int add_page(struct context *context, struct page *page, MPI_Comm comm)
{
    int error = agree(comm, open_page(page, comm));

    if (error != MPI_SUCCESS) {
        close_page(page);
        free(page);
        return error;
    }
    page->next = context->pages;
    context->pages = page;
    context->assigned = 0;
    return MPI_SUCCESS;
}

/* Tags are numbered through: every call has CHANNELS + 1 of them. */
static int count_tags(struct context *context)
{
    void *limit;
    int found = 0, most = 32767, error;

    error = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
    if (error == MPI_SUCCESS && found)
        most = *(int *)limit;
    if (most > COLLC_TAG_MAX)
        most = COLLC_TAG_MAX;
    context->tags = (most - CHANNELS) / (CHANNELS + 1) + 1;
    context->at_once = context->tags < COLLC_AT_ONCE ? context->tags : COLLC_AT_ONCE;
    context->assigned = context->at_once + (context->tags > context->at_once);
    return error;
}

/* What create_context() does that may succeed on one rank and fail on another. */
static int fill_context(struct context *context, MPI_Comm owner)
{
    int error = count_tags(context);

    if (error != MPI_SUCCESS)
        return error;
    lock(&contexts_busy);
    context->next = contexts;
    contexts = context;
    unlock(&contexts_busy);
    error = MPI_Comm_set_attr(owner, context_key, context);
    if (error == MPI_SUCCESS)
        context->owner = owner;
    return error;
}

/* The first call on a communicator: collective over it, as the duplication is. Every rank goes through it,
 * `error` or not, and all have a context afterwards, or none. */
static int create_context(MPI_Comm owner, int error, struct context **result)
{
    struct context *context = calloc(1, sizeof *context);
    struct page page = {MPI_COMM_NULL, NULL};
    int opened = open_page(&page, owner);

    if (error == MPI_SUCCESS)
        error = context == NULL ? MPI_ERR_NO_MEM : opened;
    if (context != NULL) {
        context->original = page;
        context->pages = &context->original;
        context->owner = MPI_COMM_NULL;
        context->vote = MPI_REQUEST_NULL;
    }
    if (error == MPI_SUCCESS)
        error = fill_context(context, owner);
    error = agree(owner, error);
    if (error == MPI_SUCCESS) {
        *result = context;
        return context->failure = open_letters(&context->mail, context->original.comm);
    }
    if (context == NULL)
        close_page(&page);
    else if (context->owner == owner)
        MPI_Comm_delete_attr(owner, context_key);
    else
        dispose(context);
    return error;
}

static int find_context(MPI_Comm owner, struct context **result)
{
    int found = 0, keys = create_keys(), error = MPI_SUCCESS;

    if (context_key != MPI_KEYVAL_INVALID)
        error = MPI_Comm_get_attr(owner, context_key, result, &found);
    if (error != MPI_SUCCESS)
        return error;
    return found ? (*result)->failure : create_context(owner, keys, result);
}

/* ---- Working memory ---------------------------------------------------------------------------- */

/* Memory is planned by carving pieces off nothing, allocated once, and carved again in earnest. */
struct arena {
    char *base;
    size_t used; /* SIZE_MAX: more than can be counted */
};

static void *carve(struct arena *arena, size_t bytes)
{
    size_t start = arena->used;

    if (start > SIZE_MAX - 64 || bytes > SIZE_MAX - 64 - start)
        arena->used = SIZE_MAX;
    else
        arena->used = (start + bytes + 63) / 64 * 64;
    return arena->base != NULL ? arena->base + start : NULL;
}

/* Carves room for cells of elements, by what a grant says of them; returns the address of element 0. */
static char *carve_cells(struct arena *arena, const struct call *call, int64_t cells)
{
    const struct element *element = &call->element;
    MPI_Aint reach;
    char *start;

    if (cells <= 0)
        return carve(arena, 0);
    if (((cells | call->span | call->single) >= SHORT || sizeof(size_t) < 8) && call->span > 0 &&
        cells > (PTRDIFF_MAX / 2 - call->single) / call->span) {
        arena->used = SIZE_MAX;
        return NULL;
    }
    start = carve(arena, (size_t)(cells * call->span + call->single));
    if (start == NULL || call->compact)
        return start;
    reach = element->extent < 0 ? (MPI_Aint)(cells * cell(call) - 1) * element->extent : 0;
    return further(start, -(element->true_lb + reach));
}
