/* Allgather: `count` elements in send, RANKS blocks of `count` in recv; with MPI_IN_PLACE as send our
 * contribution stands in our block of recv. */
static int bind_allgather(struct call *call, const void *send, void *recv)
{
#if RELAYS
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    call->in_place = send == MPI_IN_PLACE;
    if (unusable(call, recv) || (!call->in_place && (unusable(call, send) || send == recv)))
        return MPI_ERR_BUFFER;
    call->shift = call->rank * call->count;
    call->base[INPUT] = call->in_place ? element_at(call, recv, call->shift) : (char *)send;
    call->base[OUTPUT] = recv;
    return MPI_SUCCESS;
}
