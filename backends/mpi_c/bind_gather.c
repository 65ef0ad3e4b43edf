/* Gather: `count` elements in send, RANKS blocks of `count` in the root's recv; the root may have its
 * contribution in its block of recv, with MPI_IN_PLACE as send. Elsewhere recv is ignored. */
static int bind_gather(struct call *call, const void *send, void *recv)
{
    int in_place = call->rank == call->plan->root && send == MPI_IN_PLACE;

#if RELAYS
    call->aside = 1; /* also on ranks that only relay: all ranks agree on memory */
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    if (!in_place && unusable(call, send))
        return MPI_ERR_BUFFER;
    if (call->rank == call->plan->root && (unusable(call, recv) || send == recv))
        return MPI_ERR_BUFFER;
    call->base[INPUT] = (char *)send;
    if (call->rank == call->plan->root)
        call->base[OUTPUT] = recv;
    call->aside = 1;
    if (in_place) {
        call->base[INPUT] = element_at(call, recv, call->rank * call->count);
        call->copy_input = call->count;
    }
    return MPI_SUCCESS;
}
