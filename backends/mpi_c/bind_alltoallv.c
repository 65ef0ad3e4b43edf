/* Alltoall with counts: the arguments of MPI_Alltoallv. Block r of sendbuf goes to rank r, block r of recvbuf comes
 * from it. With MPI_IN_PLACE as sendbuf the blocks of recvbuf are sent, and replaced by those that come. Ranks first
 * exchange their counts: a rank that forwards a block needs to know its size. */
static int bind_alltoallv(struct call *call, const struct arguments *given)
{
    int ranks = call->plan->ranks, error;
    struct side all = {.address = given->recv, .blocks = ranks, .placed = 1, .count = -1};

    all.first = call->rank;
    all.stride = ranks;
    all.counts = given->recv_counts;
    all.places = given->recv_places;
    call->sizes = FROM_ALL;
#if RELAYS
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    error = take_side(call, OUTPUT, &all, given->recv_type);
    if (error != MPI_SUCCESS)
        return error;
    all.first = call->rank * ranks;
    all.stride = 1;
    call->in_place = given->send == MPI_IN_PLACE;
    if (call->in_place)
        return take_side(call, INPUT, &all, given->recv_type);
    all.address = given->send;
    all.counts = given->send_counts;
    all.places = given->send_places;
    return take_side(call, INPUT, &all, given->send_type);
}
