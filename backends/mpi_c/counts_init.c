    struct operation *it = NULL;
    int error;

    (void)info;
    if (request == NULL)
        return MPI_ERR_ARG;
    error = request_counts(&it, 1, &plans[NUMBER], &given, comm);
    *request = (PREFIX_request)it;
    return error;
}
