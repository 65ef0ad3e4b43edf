int PREFIX_attach(MPI_Comm comm)
{
    struct context *context;
    int flag = 0, error;

    if (comm == MPI_COMM_NULL)
        return MPI_ERR_COMM;
    error = MPI_Comm_test_inter(comm, &flag);
    if (error == MPI_SUCCESS && flag)
        return MPI_ERR_COMM;
    return error == MPI_SUCCESS ? find_context(comm, &context) : error;
}

int PREFIX_start(PREFIX_request *request)
{
    struct operation *it = request == NULL ? NULL : (struct operation *)*request;

    if (it == NULL || it->form != PERSISTENT || it->active)
        return MPI_ERR_REQUEST;
    if (it->context != NULL)
        return commence(it, QUEUED);
    it = &empty_start;
    *request = (PREFIX_request)it;
    return MPI_SUCCESS;
}

/* What becomes of a request that is complete. */
static int conclude(PREFIX_request *request)
{
    struct operation *it = (struct operation *)*request;
    int error = it->error;

    if (it->context == NULL) {
        it = it->form == PERSISTENT ? &empty_request : NULL;
        *request = (PREFIX_request)it;
        return MPI_SUCCESS;
    }
    it->active = 0;
    if (it->form == BEGUN) {
        dismiss(it);
        *request = NULL;
    }
    return error;
}

int PREFIX_test(PREFIX_request *request, int *flag)
{
    struct operation *it = request == NULL ? NULL : (struct operation *)*request;
    int moved;

    if (request == NULL || flag == NULL)
        return MPI_ERR_ARG;
    *flag = it == NULL || !it->active;
    if (*flag)
        return MPI_SUCCESS;
    *flag = look(it, &moved);
    if (*flag)
        return conclude(request);
    work_elsewhere(it->context);
    return MPI_SUCCESS;
}

int PREFIX_wait(PREFIX_request *request)
{
    struct operation *it = request == NULL ? NULL : (struct operation *)*request;

    if (request == NULL)
        return MPI_ERR_ARG;
    if (it == NULL || !it->active)
        return MPI_SUCCESS;
    await(it);
    return conclude(request);
}

int PREFIX_waitall(int number, PREFIX_request requests[])
{
    int error = MPI_SUCCESS, k;

    for (k = 0; k < number; k++) {
        int this_error = PREFIX_wait(&requests[k]);

        if (error == MPI_SUCCESS)
            error = this_error;
    }
    return error;
}

int PREFIX_free(PREFIX_request *request)
{
    struct operation *it = request == NULL ? NULL : (struct operation *)*request;

    if (it == NULL || it->active)
        return MPI_ERR_REQUEST;
    if (it->context != NULL) {
        dismiss(it);
        free(it);
    }
    *request = NULL;
    return MPI_SUCCESS;
}
