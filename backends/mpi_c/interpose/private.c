/* ---- Private communicators --------------------------------------------------------------------------
 *
 * A communicator gets a double when its first call is served. It is made by MPI_Comm_split, which copies
 * no attributes: no function of the program's is called, and none of its values appears twice.
 */

static void cip_leave_around(struct cip_halo *halo);

static void cip_drop(struct cip_double *gone)
{
    struct cip_double **link = &cip_all.doubles;

    cip_lock();
    cip_all.freed++;
    while (*link != NULL && *link != gone)
        link = &(*link)->next;
    if (*link == gone)
        *link = gone->next;
    cip_unlock();
    if (gone->staged != MPI_COMM_NULL)
        MPI_Comm_free(&gone->staged);
    if (gone->comm != MPI_COMM_NULL)
        MPI_Comm_free(&gone->comm);
    cip_leave_around(&gone->halo);
    free(gone->memory);
    free(gone->tuned);
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
        if (error != MPI_SUCCESS && cip_all.key_of_end != MPI_KEYVAL_INVALID)
            MPI_Comm_free_keyval(&cip_all.key_of_end);
    }
    cip_unlock();
    return error;
}

/* Whether a rank has an error: on all ranks the same. Collective. */
static int cip_fails_anywhere(MPI_Comm comm, int error)
{
    int mine = error != MPI_SUCCESS, any = 0;

    return MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS || any;
}

/* What the first call by an algorithm on a communicator would wait for. Collective. */
static int cip_attach_entries(MPI_Comm comm)
{
    int error = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), ranks = 0;
    struct cip_entry *entry;

    if (cip_all.nonblocking && MPI_Comm_size(comm, &ranks) == MPI_SUCCESS)
        for (entry = cip_all.entries; entry != NULL; entry = entry->next)
            if (entry->ranks == ranks && entry->attach(comm) != MPI_SUCCESS && error == MPI_SUCCESS)
                error = MPI_ERR_OTHER;
    return error;
}

static void cip_find_halo(MPI_Comm comm, MPI_Comm agrees, struct cip_halo *halo);

/* What cip_make_double() does that may succeed on one rank and fail on another. */
static int cip_attach(MPI_Comm owner, struct cip_double *fresh)
{
    int error = cip_attach_entries(fresh->comm);

    cip_find_halo(owner, fresh->comm, &fresh->halo);
    /* On all ranks or none: nonblocking calls must not wait for it. */
    if (cip_all.nonblocking && cip_all.uneven) {
        int made = MPI_Comm_split(fresh->comm, 0, 0, &fresh->staged);

        if (made == MPI_SUCCESS)
            made = cip_attach_entries(fresh->staged);
        if (error == MPI_SUCCESS)
            error = made;
    }
    if (error != MPI_SUCCESS)
        return error;
    cip_lock();
    fresh->next = cip_all.doubles;
    cip_all.doubles = fresh;
    cip_unlock();
    error = MPI_Comm_set_attr(owner, cip_all.key, fresh);
    if (error == MPI_SUCCESS)
        fresh->owner = owner;
    return error;
}

/* Collective; every rank goes through it, `error` or not, and all have a double afterwards, or none (NULL). */
static struct cip_double *cip_make_double(MPI_Comm owner, int error)
{
    struct cip_double *fresh = calloc(1, sizeof *fresh);
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0, made = MPI_Comm_rank(owner, &rank);

    if (made == MPI_SUCCESS)
        made = MPI_Comm_split(owner, 0, rank, &comm);
    if (error == MPI_SUCCESS)
        error = fresh == NULL ? MPI_ERR_NO_MEM : made;
    if (fresh != NULL) {
        fresh->owner = MPI_COMM_NULL;
        fresh->comm = comm;
        fresh->staged = MPI_COMM_NULL;
    }
    if (error == MPI_SUCCESS)
        error = cip_attach(owner, fresh);
    if (!cip_fails_anywhere(owner, error))
        return fresh;
    if (fresh == NULL && comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
    else if (fresh != NULL && fresh->owner == owner)
        MPI_Comm_delete_attr(owner, cip_all.key);
    else if (fresh != NULL)
        cip_drop(fresh);
    return NULL;
}

/* Collective where there is no double yet; NULL on all ranks where one of them cannot have one. */
static struct cip_double *cip_private(MPI_Comm owner)
{
    void *found = NULL;
    int flag = 0, error = cip_make_keys();

    if (cip_all.key != MPI_KEYVAL_INVALID && MPI_Comm_get_attr(owner, cip_all.key, &found, &flag) != MPI_SUCCESS)
        error = MPI_ERR_OTHER;
    return flag ? found : cip_make_double(owner, error);
}
