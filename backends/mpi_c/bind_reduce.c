/* Reduce: `count` elements in send, the result in the root's recv; the root may have its contribution
 * in recv, with MPI_IN_PLACE as send. Elsewhere recv is ignored. */
static int bind_reduce(struct call *call, const void *send, void *recv)
{
#if RELAYS
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
#if ROOTS
    if (call->rank != call->root) {
#else /* ROOTS */
    if (call->rank != call->plan->root) {
#endif /* ROOTS */
        call->base[INPUT] = (char *)send;
        return unusable(call, send) ? MPI_ERR_BUFFER : MPI_SUCCESS;
    }
    call->in_place = send == MPI_IN_PLACE;
    if (unusable(call, recv) || (!call->in_place && (unusable(call, send) || send == recv)))
        return MPI_ERR_BUFFER;
    call->base[INPUT] = call->in_place ? recv : (char *)send;
    call->base[OUTPUT] = recv;
    return MPI_SUCCESS;
}
