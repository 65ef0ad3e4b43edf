/* Scatter: RANKS blocks of `count` elements in the root's send, `count` in recv; the root may keep its
 * block where it is, with MPI_IN_PLACE as recv. Elsewhere send is ignored. */
static int bind_buffers(struct call *call, const void *send, void *recv)
{
    int in_place = call->rank == ROOT && recv == MPI_IN_PLACE;

    if (!in_place && unusable(call, recv))
        return MPI_ERR_BUFFER;
    if (call->rank == ROOT && (unusable(call, send) || send == recv))
        return MPI_ERR_BUFFER;
    if (call->rank == ROOT)
        call->base[INPUT] = (char *)send;
    call->base[OUTPUT] = recv;
    if (in_place)
        call->keep_output = call->count;
    return MPI_SUCCESS;
}
