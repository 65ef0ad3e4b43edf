/* Allgather with counts: the arguments of MPI_Allgatherv. Block r of recvbuf has recvcounts[r] elements at displs[r].
 * With MPI_IN_PLACE as sendbuf our contribution stands in our block of recvbuf. */
static int bind_allgatherv(struct call *call, const struct arguments *given)
{
    struct side all = {.address = given->recv, .blocks = call->plan->ranks, .stride = 1, .placed = 1, .count = -1};
    struct side own = {.address = given->send, .blocks = 1, .count = given->send_count};
    int error;

    own.first = call->rank;
    all.counts = given->recv_counts;
    all.places = given->recv_places;
    call->known = OUTPUT;
    error = take_side(call, OUTPUT, &all, given->recv_type);
#if RELAYS
    if (error != MPI_SUCCESS || only_relays(call))
        return error;
#else /* RELAYS */
    if (error != MPI_SUCCESS)
        return error;
#endif /* RELAYS */
    call->in_place = given->send == MPI_IN_PLACE;
    if (call->in_place) {
        all.skip = all.first = call->rank;
        all.blocks = 1;
        return take_side(call, INPUT, &all, given->recv_type);
    }
    error = take_side(call, INPUT, &own, given->send_type);
    if (error == MPI_SUCCESS && size_of(call, &call->sides[INPUT], 0) != size_of_shard(call, call->rank))
        error = MPI_ERR_COUNT;
    return error;
}
