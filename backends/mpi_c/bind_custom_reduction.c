/* The arguments of MPI_Neighbor_alltoallv, and the operation. The blocks of sendbuf are our contributions to shards,
 * those of recvbuf the shards that we need, in ascending order of shards; sendcounts and recvcounts have one number for
 * each, the same on all ranks that contribute to a shard or need it. Both types are one. There is no MPI_IN_PLACE.
 * Ranks first exchange their counts: a rank that forwards a shard needs to know its size. */
static int bind_custom_reduction(struct call *call, const struct arguments *given)
{
    const int32_t *begins = call->plan->begins + 2 * call->rank, *shards = call->plan->listed;
    struct side in = {.address = given->send, .placed = 1, .count = -1};
    struct side out = {.address = given->recv, .placed = 1, .count = -1};
    int error;

    if (given->send_type != given->recv_type)
        return MPI_ERR_TYPE;
    in.blocks = begins[1] - begins[0];
    in.listed = shards + begins[0];
    in.counts = given->send_counts;
    in.places = given->send_places;
    out.blocks = begins[2] - begins[1];
    out.listed = shards + begins[1];
    out.counts = given->recv_counts;
    out.places = given->recv_places;
    call->sizes = FROM_HOLDERS;
    error = take_side(call, INPUT, &in, given->send_type);
    return error == MPI_SUCCESS ? take_side(call, OUTPUT, &out, given->recv_type) : error;
}
