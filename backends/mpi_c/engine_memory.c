/* ---- The private communicator ------------------------------------------------------------------ */

/* A duplicate of the caller's communicator: our messages never meet the caller's. Persistent requests
 * have tags of their own; where those run out there is a further duplicate. */
struct page {
    MPI_Comm comm;
    struct page *next;
};

struct operation;

/* Hangs as an attribute on every communicator that we were called with. */
struct context {
    MPI_Comm owner; /* MPI_COMM_NULL once that is freed */
    struct page *pages;    /* the newest first */
    struct page *original; /* the oldest: of calls that are no persistent requests */
    int lanes;    /* how many calls' tags there are in a page */
    int at_once;  /* the lanes of calls that are no persistent requests, in turn */
    int turn;     /* of the next such call */
    int assigned; /* lanes of the newest page that are taken */
    int failure;  /* the error that left messages behind: no later call can be right */
    struct operation *under_way; /* in the order in which they were begun */
    int operations; /* that know this context */
    char *memory;   /* working memory kept for the next call */
    size_t capacity;
    padlock busy;
    struct context *next;
};

/* Working memory up to this size is kept between calls. */
enum { KEPT_BYTES = 1 << 22 };

static int context_key = MPI_KEYVAL_INVALID, finalize_key = MPI_KEYVAL_INVALID;
static struct context *contexts;
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

static void free_duplicates(struct context *context)
{
    struct page *page = context->pages;

    /* After a failure messages may be left in there, and a new communicator could inherit them. */
    for (; page != NULL && context->failure == MPI_SUCCESS; page = page->next)
        MPI_Comm_free(&page->comm);
}

/* Nobody may know the context any more. */
static void dispose(struct context *context)
{
    struct context **link = &contexts;
    struct page *page = context->pages;

    lock(&context->busy); /* by a thread that looks whether anything here can go on */
    lock(&contexts_busy);
    while (*link != NULL && *link != context)
        link = &(*link)->next;
    if (*link == context)
        *link = context->next;
    unlock(&contexts_busy);
    free_duplicates(context);
    while (page != NULL) {
        struct page *next = page->next;

        free(page);
        page = next;
    }
    free(context->memory);
    free(context);
}

/* The owner is being freed. Requests on it can still be completed. */
static int on_free(MPI_Comm comm, int key, void *attribute, void *extra)
{
    struct context *context = attribute;
    int left;

    (void)comm, (void)key, (void)extra;
    lock(&context->busy);
    context->owner = MPI_COMM_NULL;
    left = context->operations;
    unlock(&context->busy);
    if (left == 0)
        dispose(context);
    return MPI_SUCCESS;
}

/* MPI_Finalize frees the attributes of MPI_COMM_SELF first, while communicators can still be freed:
 * the moment to let go of those whose owner, like MPI_COMM_WORLD, is never freed. */
static int on_finalize(MPI_Comm comm, int key, void *attribute, void *extra)
{
    struct context *context;

    (void)comm, (void)key, (void)attribute, (void)extra;
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
    }
    unlock(&contexts_busy);
    return error;
}

/* Adds a duplicate of a communicator; collective over it. */
static int add_page(struct context *context, MPI_Comm comm)
{
    struct page *page = malloc(sizeof *page);
    int error;

    if (page == NULL)
        return MPI_ERR_NO_MEM;
    page->comm = MPI_COMM_NULL;
    error = MPI_Comm_dup(comm, &page->comm);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_set_errhandler(page->comm, MPI_ERRORS_RETURN);
    if (error != MPI_SUCCESS) {
        if (page->comm != MPI_COMM_NULL)
            MPI_Comm_free(&page->comm);
        free(page);
        return error;
    }
    page->next = context->pages;
    context->pages = page;
    return MPI_SUCCESS;
}

/* Tags are numbered through: every call has CHANNELS + 1 of them. */
static int count_lanes(struct context *context)
{
    void *limit;
    int found = 0, most = 32767, error;

    error = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
    if (error == MPI_SUCCESS && found)
        most = *(int *)limit;
    if (most > COLLC_TAG_MAX)
        most = COLLC_TAG_MAX;
    context->lanes = (most - CHANNELS) / (CHANNELS + 1) + 1;
    context->at_once = context->lanes < COLLC_AT_ONCE ? context->lanes : COLLC_AT_ONCE;
    context->assigned = context->at_once;
    return error;
}

/* The first call on a communicator: collective over it, as the duplication is. */
static int create_context(MPI_Comm owner, struct context **result)
{
    struct context *context = calloc(1, sizeof *context);
    int error;

    if (context == NULL)
        return MPI_ERR_NO_MEM;
    context->owner = owner;
    error = count_lanes(context);
    if (error == MPI_SUCCESS)
        error = add_page(context, owner);
    context->original = context->pages;
    if (error == MPI_SUCCESS) {
        lock(&contexts_busy);
        context->next = contexts;
        contexts = context;
        unlock(&contexts_busy);
        error = MPI_Comm_set_attr(owner, context_key, context);
    }
    if (error != MPI_SUCCESS) {
        dispose(context);
        return error;
    }
    *result = context;
    return MPI_SUCCESS;
}

static int find_context(MPI_Comm owner, struct context **result)
{
    int found = 0, error = create_keys();

    if (error == MPI_SUCCESS)
        error = MPI_Comm_get_attr(owner, context_key, result, &found);
    if (error != MPI_SUCCESS)
        return error;
    return found ? (*result)->failure : create_context(owner, result);
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

/* Carves room for `times` * `elements` elements, by their true extent; returns the address of element 0. */
static char *carve_elements(struct arena *arena, const struct element *element, int64_t times,
                            int64_t elements)
{
    MPI_Aint width = element->extent < 0 ? -element->extent : element->extent, below, reach;
    int64_t most = PTRDIFF_MAX / 2;
    char *start;

    if (times <= 0 || elements <= 0)
        return carve(arena, 0);
    if (element->true_extent > most / 2 ||
        (width > 0 && times > (most - element->true_extent) / width / elements)) {
        arena->used = SIZE_MAX;
        return NULL;
    }
    reach = (MPI_Aint)(times * elements - 1) * width;
    below = element->extent < 0 ? element->true_lb - reach : element->true_lb;
    start = carve(arena, (size_t)(reach + element->true_extent));
    return start != NULL ? start - below : NULL;
}

/* Returns the memory kept, where it is large enough, or new one; NULL where there is none. */
static char *borrow(struct context *context, size_t bytes, size_t *capacity)
{
    char *memory = context->memory;

    if (bytes == SIZE_MAX)
        return NULL;
    *capacity = bytes;
    if (memory == NULL || bytes > context->capacity)
        return malloc(bytes > 0 ? bytes : 1);
    *capacity = context->capacity;
    context->memory = NULL;
    context->capacity = 0;
    return memory;
}

/* Keeps the larger of two. */
static void give_back(struct context *context, char *memory, size_t capacity)
{
    if (memory != NULL && capacity > context->capacity && capacity <= KEPT_BYTES) {
        free(context->memory);
        context->memory = memory;
        context->capacity = capacity;
    } else {
        free(memory);
    }
}
