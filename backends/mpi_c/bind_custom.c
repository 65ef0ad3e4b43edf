/* The arguments of MPI_Neighbor_alltoallv. The blocks of sendbuf are the shards that our rank has before the call, those
 * of recvbuf the shards that it needs, in ascending order of shards; sendcounts and recvcounts have one number for
 * each. There is no MPI_IN_PLACE. Ranks first exchange their counts: a rank that forwards a shard needs to know its
 * size. */
static int bind_custom(struct call *call, const struct arguments *given)
{
    const int32_t *begins = call->plan->begins + 2 * call->rank, *shards = call->plan->listed;
    struct side in = {.address = given->send, .placed = 1, .count = -1};
    struct side out = {.address = given->recv, .placed = 1, .count = -1};
    int error;

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
