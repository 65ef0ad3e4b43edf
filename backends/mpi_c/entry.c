int NAME(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct context *context;
    struct call call;
    int algorithm, error = check(count, type, op, comm);

    if (error != MPI_SUCCESS || count == 0)
        return error;
    memset(&call, 0, sizeof call);
    call.op = op;
    call.count = count;
    error = measure(&call.element, type);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_rank(comm, &call.rank);
    if (error == MPI_SUCCESS)
        error = bind_buffers(&call, send, recv);
    if (error == MPI_SUCCESS)
        error = find_context(comm, &context);
    if (error != MPI_SUCCESS)
        return error;
    call.comm = context->comm;
    algorithm = choose(&call);
    call.row = algorithm * RANKS + call.rank;
    call.chunks = algorithm_chunks[algorithm];
    return run(context, &call);
}
