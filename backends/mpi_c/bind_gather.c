/* Gather: `count` elements in send, RANKS blocks of `count` in the root's recv; the root may have its
 * contribution in its block of recv, with MPI_IN_PLACE as send. Elsewhere recv is ignored. */
static int bind_gather(struct call *call, const void *send, void *recv)
{
#if ROOTS
    int at_root = call->rank == call->root, in_place = at_root && send == MPI_IN_PLACE;

    call->shuffles = call->plan->roots >= 0;
#else /* ROOTS */
    int in_place = call->rank == call->plan->root && send == MPI_IN_PLACE;

#endif /* ROOTS */
#if RELAYS
    call->aside = 1; /* also on ranks that only relay: all ranks agree on memory */
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    if (!in_place && unusable(call, send))
        return MPI_ERR_BUFFER;
#if ROOTS
    if (at_root && (unusable(call, recv) || send == recv))
        return MPI_ERR_BUFFER;
    call->base[INPUT] = (char *)send;
    if (at_root)
        call->base[OUTPUT] = recv;
    if (at_root && call->part != call->rank)
        call->shuffled = OUTPUT;
#else /* ROOTS */
    if (call->rank == call->plan->root && (unusable(call, recv) || send == recv))
        return MPI_ERR_BUFFER;
    call->base[INPUT] = (char *)send;
    if (call->rank == call->plan->root)
        call->base[OUTPUT] = recv;
#endif /* ROOTS */
    call->aside = 1;
    if (in_place) {
        call->base[INPUT] = element_at(call, recv, call->rank * call->count);
#if ROOTS
        call->copy_input = call->shuffled == OUTPUT ? 0 : call->count;
#else /* ROOTS */
        call->copy_input = call->count;
#endif /* ROOTS */
    }
    return MPI_SUCCESS;
}
