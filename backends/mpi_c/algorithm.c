const char *NAME_algorithm(MPI_Count count, MPI_Datatype type)
{
    const struct plan *plan = &plans[NUMBER];
    struct element element;

    if (count < 0 || type == MPI_DATATYPE_NULL || measure(&element, type) != MPI_SUCCESS)
        return NULL;
    return algorithm_names[choose(plan, &element, count)];
}
