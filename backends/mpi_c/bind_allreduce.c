/* Allreduce: `count` elements in send and in recv, or all in recv with MPI_IN_PLACE as send. */
static int bind_allreduce(struct call *call, const void *send, void *recv)
{
#if RELAYS
    if (only_relays(call))
        return MPI_SUCCESS;
#endif /* RELAYS */
    call->in_place = send == MPI_IN_PLACE;
    if (unusable(call, recv) || (!call->in_place && (unusable(call, send) || send == recv)))
        return MPI_ERR_BUFFER;
    call->base[INPUT] = call->in_place ? recv : (char *)send;
    call->base[OUTPUT] = recv;
    return MPI_SUCCESS;
}
