
    return perform_counts(&plans[NUMBER], &given, comm);
}
