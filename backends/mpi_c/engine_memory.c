/* ---- The private communicator ------------------------------------------------------------------ */

/* Hangs as an attribute on every communicator we were called with: a duplicate of it, so that our
 * messages never meet the caller's, and working memory kept from call to call. */
struct context {
    MPI_Comm owner, comm;
    int failure; /* the error that left messages of a call behind: no later call can be right */
    char *memory;
    size_t capacity;
    struct context *next;
};

/* Working memory up to this size is kept between calls. */
enum { KEPT_BYTES = 1 << 22 };

static int context_key = MPI_KEYVAL_INVALID, finalize_key = MPI_KEYVAL_INVALID;
static struct context *contexts;

static void dispose(struct context *context)
{
    struct context **link = &contexts;

    while (*link != NULL && *link != context)
        link = &(*link)->next;
    if (*link == context)
        *link = context->next;
    /* After a failure messages may be left in there, and a new communicator could inherit them. */
    if (context->comm != MPI_COMM_NULL && context->failure == MPI_SUCCESS)
        MPI_Comm_free(&context->comm);
    free(context->memory);
    free(context);
}

/* The owner is being freed. */
static int on_free(MPI_Comm comm, int key, void *attribute, void *extra)
{
    (void)comm, (void)key, (void)extra;
    dispose(attribute);
    return MPI_SUCCESS;
}

/* MPI_Finalize frees the attributes of MPI_COMM_SELF first, while communicators can still be freed:
 * the moment to let go of those whose owner, like MPI_COMM_WORLD, is never freed. */
static int on_finalize(MPI_Comm comm, int key, void *attribute, void *extra)
{
    (void)comm, (void)key, (void)attribute, (void)extra;
    while (contexts != NULL)
        if (MPI_Comm_delete_attr(contexts->owner, context_key) != MPI_SUCCESS)
            break;
    MPI_Comm_free_keyval(&context_key);
    MPI_Comm_free_keyval(&finalize_key);
    return MPI_SUCCESS;
}

static int create_keys(void)
{
    int error = MPI_SUCCESS;

    if (context_key == MPI_KEYVAL_INVALID)
        error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &context_key, NULL);
    if (error == MPI_SUCCESS && finalize_key == MPI_KEYVAL_INVALID) {
        error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &finalize_key, NULL);
        if (error == MPI_SUCCESS)
            error = MPI_Comm_set_attr(MPI_COMM_SELF, finalize_key, NULL);
    }
    return error;
}

/* The first call on a communicator: collective over it, as the duplication is. */
static int create_context(MPI_Comm owner, struct context **result)
{
    struct context *context;
    int error = create_keys();

    if (error != MPI_SUCCESS)
        return error;
    context = calloc(1, sizeof *context);
    if (context == NULL)
        return MPI_ERR_NO_MEM;
    context->owner = owner;
    context->comm = MPI_COMM_NULL;
    context->next = contexts;
    contexts = context;
    error = MPI_Comm_dup(owner, &context->comm);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_set_errhandler(context->comm, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_set_attr(owner, context_key, context);
    if (error != MPI_SUCCESS) {
        dispose(context);
        return error;
    }
    *result = context;
    return MPI_SUCCESS;
}

static int find_context(MPI_Comm owner, struct context **result)
{
    int found = 0;

    if (context_key != MPI_KEYVAL_INVALID) {
        int error = MPI_Comm_get_attr(owner, context_key, result, &found);

        if (error != MPI_SUCCESS)
            return error;
    }
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

/* Carves room for elements, by their true extent, and returns the address of element 0. */
static char *carve_elements(struct arena *arena, const struct element *element, int64_t elements)
{
    MPI_Aint width = element->extent < 0 ? -element->extent : element->extent, below, reach;
    char *start;

    if (elements <= 0)
        return carve(arena, 0);
    if (width > 0 && elements > (INT64_MAX - element->true_extent) / 2 / width) {
        arena->used = SIZE_MAX;
        return NULL;
    }
    reach = (MPI_Aint)(elements - 1) * width;
    below = element->extent < 0 ? element->true_lb - reach : element->true_lb;
    start = carve(arena, (size_t)(reach + element->true_extent));
    return start != NULL ? start - below : NULL;
}

static int reserve(struct context *context, size_t bytes)
{
    if (bytes == SIZE_MAX)
        return MPI_ERR_NO_MEM;
    if (bytes <= context->capacity)
        return MPI_SUCCESS;
    free(context->memory);
    context->capacity = 0;
    context->memory = malloc(bytes);
    if (context->memory == NULL)
        return MPI_ERR_NO_MEM;
    context->capacity = bytes;
    return MPI_SUCCESS;
}

static void trim(struct context *context)
{
    if (context->capacity > KEPT_BYTES) {
        free(context->memory);
        context->memory = NULL;
        context->capacity = 0;
    }
}
