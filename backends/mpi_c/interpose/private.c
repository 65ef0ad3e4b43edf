/* ---- Private communicators --------------------------------------------------------------------------
 *
 * A communicator gets a double when its first call is served. It is made by MPI_Comm_split, which copies
 * no attributes: no function of the program's is called, and none of its values appears twice.
 */

static void cip_drop(struct cip_double *gone)
{
    struct cip_double **link = &cip_all.doubles;

    cip_lock();
    while (*link != NULL && *link != gone)
        link = &(*link)->next;
    if (*link == gone)
        *link = gone->next;
    cip_unlock();
    if (gone->comm != MPI_COMM_NULL)
        MPI_Comm_free(&gone->comm);
    free(gone);
}

/* The program frees the communicator. */
static int cip_on_free(MPI_Comm comm, int key, void *attribute, void *extra)
{
    (void)comm, (void)key, (void)extra;
    cip_depth++;
    cip_drop(attribute);
    cip_depth--;
    return MPI_SUCCESS;
}

/* The end of MPI: communicators that nobody frees, like MPI_COMM_WORLD. */
static int cip_on_end(MPI_Comm comm, int key, void *attribute, void *extra)
{
    (void)comm, (void)key, (void)attribute, (void)extra;
    cip_depth++;
    while (cip_all.doubles != NULL)
        if (MPI_Comm_delete_attr(cip_all.doubles->owner, cip_all.key) != MPI_SUCCESS)
            break;
    cip_depth--;
    MPI_Comm_free_keyval(&cip_all.key);
    MPI_Comm_free_keyval(&cip_all.key_of_end);
    return MPI_SUCCESS;
}

static int cip_make_keys(void)
{
    int error = MPI_SUCCESS;

    cip_lock();
    if (cip_all.key == MPI_KEYVAL_INVALID)
        error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, cip_on_free, &cip_all.key, NULL);
    if (error == MPI_SUCCESS && cip_all.key_of_end == MPI_KEYVAL_INVALID) {
        error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, cip_on_end, &cip_all.key_of_end, NULL);
        if (error == MPI_SUCCESS)
            error = MPI_Comm_set_attr(MPI_COMM_SELF, cip_all.key_of_end, NULL);
    }
    cip_unlock();
    return error;
}

/* Collective where there is no double yet. */
static int cip_private(MPI_Comm owner, MPI_Comm *comm)
{
    struct cip_double *fresh;
    void *found = NULL;
    int flag = 0, rank, error = cip_make_keys();

    if (error == MPI_SUCCESS)
        error = MPI_Comm_get_attr(owner, cip_all.key, &found, &flag);
    if (error != MPI_SUCCESS)
        return error;
    if (flag) {
        *comm = ((struct cip_double *)found)->comm;
        return MPI_SUCCESS;
    }
    fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return MPI_ERR_NO_MEM;
    fresh->owner = owner;
    fresh->comm = MPI_COMM_NULL;
    error = MPI_Comm_rank(owner, &rank);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_split(owner, 0, rank, &fresh->comm);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_set_errhandler(fresh->comm, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS) {
        cip_lock();
        fresh->next = cip_all.doubles;
        cip_all.doubles = fresh;
        cip_unlock();
        error = MPI_Comm_set_attr(owner, cip_all.key, fresh);
    }
    if (error != MPI_SUCCESS) {
        cip_drop(fresh);
        return error;
    }
    *comm = fresh->comm;
    return MPI_SUCCESS;
}
