/* Gather with counts: the arguments of MPI_Gatherv; root is the one above. Block r of the root's recvbuf has
 * recvcounts[r] elements at displs[r]; the root may have its contribution there, with MPI_IN_PLACE as sendbuf.
 * Elsewhere recvbuf, recvcounts, displs and recvtype are ignored. The root first tells all ranks the counts: a rank
 * that forwards a block needs to know its size. */
static int bind_gatherv(struct call *call, const struct arguments *given)
{
    struct side all = {.address = given->recv, .blocks = call->plan->ranks, .stride = 1, .placed = 1, .count = -1};
    struct side own = {.address = given->send, .blocks = 1, .count = given->send_count};
    int error;

    own.first = call->rank;
    call->sizes = FROM_ROOT;
    call->known = OUTPUT;
#if RELAYS
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    if (call->rank != call->plan->root)
        return take_side(call, INPUT, &own, given->send_type);
    all.counts = given->recv_counts;
    all.places = given->recv_places;
    error = take_side(call, OUTPUT, &all, given->recv_type);
    if (error != MPI_SUCCESS)
        return error;
    if (given->send != MPI_IN_PLACE)
        return take_side(call, INPUT, &own, given->send_type);
    all.skip = all.first = call->rank;
    all.blocks = 1;
    all.apart = 1;
    return take_side(call, INPUT, &all, given->recv_type);
}
