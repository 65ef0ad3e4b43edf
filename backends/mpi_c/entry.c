int NAME(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
#if ROOTS
    return perform(&plans[NUMBER], plans[NUMBER].root, send, recv, count, type, op, comm);
#else /* ROOTS */
    return perform(&plans[NUMBER], send, recv, count, type, op, comm);
#endif /* ROOTS */
}

int NAME_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
#if ROOTS
    return perform(&plans[NUMBER], plans[NUMBER].root, send, recv, count, type, op, comm);
#else /* ROOTS */
    return perform(&plans[NUMBER], send, recv, count, type, op, comm);
#endif /* ROOTS */
}

int NAME_begin(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm, PREFIX_request *request)
{
    struct operation *it = NULL;
    int error;

    if (request == NULL)
        return MPI_ERR_ARG;
#if ROOTS
    error = make_request(&it, 0, &plans[NUMBER], plans[NUMBER].root, send, recv, count, type, op, comm);
#else /* ROOTS */
    error = make_request(&it, 0, &plans[NUMBER], send, recv, count, type, op, comm);
#endif /* ROOTS */
    *request = (PREFIX_request)it;
    return error;
}

int NAME_init(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm, MPI_Info info, PREFIX_request *request)
{
    struct operation *it = NULL;
    int error;

    (void)info;
    if (request == NULL)
        return MPI_ERR_ARG;
#if ROOTS
    error = make_request(&it, 1, &plans[NUMBER], plans[NUMBER].root, send, recv, count, type, op, comm);
#else /* ROOTS */
    error = make_request(&it, 1, &plans[NUMBER], send, recv, count, type, op, comm);
#endif /* ROOTS */
    *request = (PREFIX_request)it;
    return error;
}
