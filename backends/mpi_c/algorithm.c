const char *NAME_algorithm(int count, MPI_Datatype type)
{
    struct call call;

    if (count < 0 || type == MPI_DATATYPE_NULL || measure(&call.element, type) != MPI_SUCCESS)
        return NULL;
    call.count = count;
    return algorithm_names[choose(&call)];
}
