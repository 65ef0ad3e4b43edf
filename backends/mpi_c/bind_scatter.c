/* Scatter: RANKS blocks of `count` elements in the root's send, `count` in recv; the root may keep its
 * block where it is, with MPI_IN_PLACE as recv. Elsewhere send is ignored. */
static int bind_scatter(struct call *call, const void *send, void *recv)
{
#if ROOTS
    int at_root = call->rank == call->root, in_place = at_root && recv == MPI_IN_PLACE;

    call->shuffles = call->plan->roots >= 0;
#else /* ROOTS */
    int in_place = call->rank == call->plan->root && recv == MPI_IN_PLACE;

#endif /* ROOTS */
#if RELAYS
    call->aside = 1; /* also on ranks that only relay: all ranks agree on memory */
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    if (!in_place && unusable(call, recv))
        return MPI_ERR_BUFFER;
#if ROOTS
    if (at_root && (unusable(call, send) || send == recv))
        return MPI_ERR_BUFFER;
    if (at_root)
        call->base[INPUT] = (char *)send;
    if (at_root && call->part != call->rank)
        call->shuffled = INPUT;
#else /* ROOTS */
    if (call->rank == call->plan->root && (unusable(call, send) || send == recv))
        return MPI_ERR_BUFFER;
    if (call->rank == call->plan->root)
        call->base[INPUT] = (char *)send;
#endif /* ROOTS */
    call->base[OUTPUT] = recv;
    call->aside = 1;
    if (in_place)
        call->keep_output = call->count;
    return MPI_SUCCESS;
}
