/* ---- What this file serves ------------------------------------------------------------------------------ */

/* The ranks have agreed that there is no memory unless there was an error in the middle of a call, which spoils the
 * communicator. */
static int cip_outcome(int error, MPI_Comm comm)
{
    struct context *context = NULL;
    int found = 0;

    if (error != MPI_ERR_NO_MEM || MPI_Comm_get_attr(comm, context_key, &context, &found) != MPI_SUCCESS)
        return error;
    return found && context->failure != MPI_SUCCESS ? error : CIP_NOT_BEGUN;
}

static int cip_start_this(void *request)
{
    struct operation *it = request;

    return it->active ? MPI_ERR_REQUEST : commence(it, QUEUED);
}

static int cip_test_this(void **request, int *done, int *moved)
{
    *done = look(*request, moved);
    return *done ? conclude((void *)request) : MPI_SUCCESS;
}

static void cip_forget_this(void *request)
{
    dismiss(request);
    free(request);
}

static int cip_attach_this(MPI_Comm comm)
{
    struct context *context;

    return find_context(comm, &context);
}

@CALLS@
static struct cip_entry cip_these[] = {
@ENTRIES@
};

__attribute__((constructor)) static void cip_enlist_these(void)
{
    size_t k;

    for (k = 0; k < sizeof cip_these / sizeof *cip_these; k++)
        cip_enlist(&cip_these[k]);
}
