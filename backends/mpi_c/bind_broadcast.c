/* Broadcast: `count` elements, the root's to everybody's recv. The buffer of MPI_Bcast is recv; a root
 * that gives another address as send (not MPI_IN_PLACE, not NULL) has its data read there instead. */
static int bind_broadcast(struct call *call, const void *send, void *recv)
{
#if RELAYS
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    if (unusable(call, recv))
        return MPI_ERR_BUFFER;
    call->base[OUTPUT] = recv;
#if ROOTS
    if (call->rank != call->root)
#else /* ROOTS */
    if (call->rank != call->plan->root)
#endif /* ROOTS */
        return MPI_SUCCESS;
    call->in_place = send == MPI_IN_PLACE || send == NULL || send == recv;
    call->base[INPUT] = call->in_place ? recv : (char *)send;
    return MPI_SUCCESS;
}
