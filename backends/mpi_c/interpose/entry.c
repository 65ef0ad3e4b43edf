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
