/* Reduce-scatter with counts: the arguments of MPI_Reduce_scatter. Block r of sendbuf has recvcounts[r] elements, one
 * block after the other; recvbuf has our recvcounts. With MPI_IN_PLACE as sendbuf the blocks stand in recvbuf, and
 * our result replaces its first elements. It is built aside, so that the others stay as they were. */
static int bind_reduce_scatterv(struct call *call, const struct arguments *given)
{
    int in_place = given->send == MPI_IN_PLACE, error;
    struct side all = {.blocks = call->plan->ranks, .stride = 1, .count = -1}, own = {.blocks = 1};

    own.address = given->recv;
    own.first = call->rank;
    all.address = in_place ? given->recv : given->send;
    all.counts = given->recv_counts;
    call->known = INPUT;
    error = take_side(call, INPUT, &all, given->recv_type);
#if RELAYS
    call->aside = 1; /* also on ranks that only relay: all ranks agree on memory */
    if (error != MPI_SUCCESS || only_relays(call))
        return error;
#else /* RELAYS */
    if (error != MPI_SUCCESS)
        return error;
#endif /* RELAYS */
    own.count = size_of_shard(call, call->rank);
    call->aside = 1;
    if (in_place) {
        call->keep_output = own.count;
        call->deliver = given->recv;
    }
    return take_side(call, OUTPUT, &own, given->recv_type);
}
