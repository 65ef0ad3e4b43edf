/* Reduce-scatter as MPI_Reduce_scatter_block: RANKS blocks of `count` elements in send, `count` in
 * recv; with MPI_IN_PLACE as send the blocks stand in recv, and our result replaces the first. It is
 * built aside, so that the other blocks stay as they were. */
static int bind_reduce_scatter(struct call *call, const void *send, void *recv)
{
    int in_place = send == MPI_IN_PLACE;

#if RELAYS
    call->aside = 1; /* also on ranks that only relay: all ranks agree on memory */
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    if (unusable(call, recv) || (!in_place && (unusable(call, send) || send == recv)))
        return MPI_ERR_BUFFER;
    call->base[INPUT] = in_place ? recv : (char *)send;
    call->base[OUTPUT] = recv;
    call->aside = 1;
    if (in_place) {
        call->keep_output = call->count;
        call->deliver = recv;
    }
    return MPI_SUCCESS;
}
