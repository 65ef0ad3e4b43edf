    struct operation *it = NULL;
    int error;

    if (request == NULL)
        return MPI_ERR_ARG;
    error = request_counts(&it, 0, &plans[NUMBER], &given, comm);
    *request = (PREFIX_request)it;
    return error;
}
