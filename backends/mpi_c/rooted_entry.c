int NAME(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    return perform(plan_of(&plans[NUMBER], AMONG, root), root, send, recv, count, type, op, comm);
}

int NAME_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
           MPI_Comm comm)
{
    return perform(plan_of(&plans[NUMBER], AMONG, root), root, send, recv, count, type, op, comm);
}

int NAME_begin(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm, PREFIX_request *request)
{
    struct operation *it = NULL;
    int error;

    if (request == NULL)
        return MPI_ERR_ARG;
    error = make_request(&it, 0, plan_of(&plans[NUMBER], AMONG, root), root, send, recv, count, type, op, comm);
    *request = (PREFIX_request)it;
    return error;
}

int NAME_init(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
              MPI_Comm comm, MPI_Info info, PREFIX_request *request)
{
    struct operation *it = NULL;
    int error;

    (void)info;
    if (request == NULL)
        return MPI_ERR_ARG;
    error = make_request(&it, 1, plan_of(&plans[NUMBER], AMONG, root), root, send, recv, count, type, op, comm);
    *request = (PREFIX_request)it;
    return error;
}
