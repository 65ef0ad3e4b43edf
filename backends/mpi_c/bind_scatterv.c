/* Scatter with counts: the arguments of MPI_Scatterv; root is the one above. Block r of the root's sendbuf has
 * sendcounts[r] elements at displs[r]; the root may keep its block where it is, with MPI_IN_PLACE as recvbuf.
 * Elsewhere sendbuf, sendcounts, displs and sendtype are ignored. The root first tells all ranks the counts: a rank
 * that forwards a block needs to know its size. */
static int bind_scatterv(struct call *call, const struct arguments *given)
{
    struct side all = {.address = given->send, .blocks = call->plan->ranks, .stride = 1, .placed = 1, .count = -1};
    struct side own = {.address = given->recv, .blocks = 1, .count = given->recv_count};
    int error;

    own.first = call->rank;
    call->sizes = FROM_ROOT;
    call->known = INPUT;
#if RELAYS
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    if (call->rank != call->plan->root)
        return take_side(call, OUTPUT, &own, given->recv_type);
    all.counts = given->send_counts;
    all.places = given->send_places;
    error = take_side(call, INPUT, &all, given->send_type);
    if (error != MPI_SUCCESS)
        return error;
    if (given->recv != MPI_IN_PLACE)
        return take_side(call, OUTPUT, &own, given->recv_type);
    all.skip = all.first = call->rank;
    all.blocks = 1;
    error = take_side(call, OUTPUT, &all, given->send_type);
    call->sides[OUTPUT].apart = 1;
    call->sides[OUTPUT].address = MPI_IN_PLACE;
    return error;
}
