const char *NAME_algorithm(MPI_Count count, MPI_Datatype type, int root)
{
    const struct plan *plan = plan_of(&plans[NUMBER], AMONG, root);
    struct element element;

    if (plan == NULL || count < 0 || type == MPI_DATATYPE_NULL || measure(&element, type) != MPI_SUCCESS)
        return NULL;
    return algorithm_names[choose(plan, &element, count)];
}
