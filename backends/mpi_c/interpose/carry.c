/* ---- Carrying them out ------------------------------------------------------------------------------- */

static int cip_reduce(const struct cip_call *call, const struct cip_entry *entry, int rank, MPI_Comm comm)
{
    const void *send = call->send;

    /* The same buffer twice: MPI forbids it, and who does it means it in place. */
    if (send == call->recv && (call->kind != CIP_REDUCE || rank == call->root))
        send = MPI_IN_PLACE;
    return entry->call(send, call->recv, call->send_count, call->send_type, call->op, comm);
}

/* How a type was made, -1 where that is not known; and of a contiguous or duplicated type what it is made of. */
static int cip_combiner(MPI_Datatype type, MPI_Datatype *inner)
{
    int combiner, integers[1], error;
    MPI_Aint addresses[1];
#if MPI_VERSION >= 4
    MPI_Count numbers[4], counts[1];

    error = MPI_Type_get_envelope_c(type, &numbers[0], &numbers[1], &numbers[2], &numbers[3], &combiner);
#else
    int numbers[3];

    error = MPI_Type_get_envelope(type, &numbers[0], &numbers[1], &numbers[2], &combiner);
#endif
    if (error != MPI_SUCCESS)
        return -1;
    if (inner == NULL || (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP))
        return combiner;
#if MPI_VERSION >= 4
    error = MPI_Type_get_contents_c(type, numbers[0], numbers[1], numbers[2], numbers[3], integers, addresses,
                                    counts, inner);
#else
    error = MPI_Type_get_contents(type, numbers[0], numbers[1], numbers[2], integers, addresses, inner);
#endif
    return error == MPI_SUCCESS ? combiner : -1;
}

/* Whether elements are bytes one after the other, in the order in which they are sent. */
static int cip_dense(MPI_Datatype type)
{
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    MPI_Aint lb, extent;
    int dense, combiner;

    if (MPI_Type_get_extent(type, &lb, &extent) != MPI_SUCCESS || lb != 0 || extent != cip_size(type))
        return 0;
    combiner = cip_combiner(type, &inner);
    if (inner == MPI_DATATYPE_NULL)
        return combiner == MPI_COMBINER_NAMED;
    dense = cip_dense(inner);
    combiner = cip_combiner(inner, NULL);
    if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
        combiner != MPI_COMBINER_F90_COMPLEX && combiner != MPI_COMBINER_F90_INTEGER)
        MPI_Type_free(&inner); /* a handle of our own */
    return dense;
}

/* Copies elements into bytes one after the other, or from there. */
static int cip_pack(void *elements, int64_t count, MPI_Datatype type, char *bytes, int unpack, MPI_Comm comm)
{
    int64_t size = cip_size(type);
    int error = MPI_SUCCESS;
#if MPI_VERSION >= 4
    MPI_Count position = 0;

    if (unpack)
        error = MPI_Unpack_c(bytes, count * size, &position, elements, count, type, comm);
    else
        error = MPI_Pack_c(elements, count, type, bytes, count * size, &position, comm);
#else
    MPI_Aint lb, extent;
    int64_t done = 0, most = INT_MAX / size;

    error = MPI_Type_get_extent(type, &lb, &extent);
    while (done < count && error == MPI_SUCCESS) {
        int now = (int)(count - done < most ? count - done : most), position = 0;
        char *at = (char *)elements + done * extent;

        if (unpack)
            error = MPI_Unpack(bytes + done * size, (int)(now * size), &position, at, now, type, comm);
        else
            error = MPI_Pack(at, now, type, bytes + done * size, (int)(now * size), &position, comm);
        done += now;
    }
#endif
    return error;
}

/* Data of a call as bytes: where they are, or a copy. */
struct cip_bytes {
    char *at, *copy;
};

static int cip_stage(struct cip_bytes *bytes, int64_t size)
{
    bytes->at = bytes->copy = malloc((size_t)size);
    return bytes->copy != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Collectives that move data, as bytes. Types that are not dense are packed and unpacked. */
static int cip_move(const struct cip_call *call, const struct cip_entry *entry, int rank, int64_t block,
                    MPI_Comm comm)
{
    struct cip_bytes in = {NULL, NULL}, out = {NULL, NULL};
    int at_root = cip_rooted(call) && rank == call->root, blocks = entry->ranks, error = MPI_SUCCESS;
    int in_place = call->send == MPI_IN_PLACE && call->kind != CIP_BROADCAST;
    int stays = call->kind == CIP_SCATTER && at_root && call->recv == MPI_IN_PLACE;
    int sends = call->kind == CIP_BROADCAST ? 0 : call->kind == CIP_SCATTER ? at_root : 1;
    int receives = call->kind == CIP_GATHER ? at_root : call->kind == CIP_SCATTER ? !stays : 1;
    int send_blocks = call->kind == CIP_ALLTOALL || call->kind == CIP_SCATTER ? blocks : 1;
    int recv_blocks = call->kind == CIP_SCATTER || call->kind == CIP_BROADCAST ? 1 : blocks;
    int dense_out = receives ? cip_dense(call->recv_type) : 1;
    int64_t count = call->recv_count;

    if (receives && dense_out)
        out.at = call->recv;
    else if (receives)
        error = cip_stage(&out, recv_blocks * block);
    if (error == MPI_SUCCESS && call->kind == CIP_BROADCAST && at_root && !dense_out)
        error = cip_pack(call->recv, count, call->recv_type, out.at, 0, comm);
    if (error == MPI_SUCCESS && sends && in_place && !dense_out) {
        MPI_Aint lb, extent;

        /* What stands in place is packed: our block of it, or all. */
        error = cip_stage(&in, send_blocks * block);
        if (error == MPI_SUCCESS)
            error = MPI_Type_get_extent(call->recv_type, &lb, &extent);
        if (error == MPI_SUCCESS)
            error = cip_pack((char *)call->recv + (send_blocks == 1 ? rank * count * extent : 0),
                             send_blocks * count, call->recv_type, in.at, 0, comm);
    } else if (error == MPI_SUCCESS && sends && !in_place) {
        in.at = (char *)call->send;
        if (call->send == call->recv || !cip_dense(call->send_type)) {
            error = cip_stage(&in, send_blocks * block);
            if (error == MPI_SUCCESS)
                error = cip_pack((void *)call->send, send_blocks * call->send_count, call->send_type, in.at, 0,
                                 comm);
        } else if (dense_out && receives && call->kind != CIP_SCATTER && send_blocks == 1 &&
                   in.at == out.at + rank * block) {
            in.at = NULL; /* it is where in place would have it */
        }
    }
    if (error == MPI_SUCCESS)
        error = entry->call(call->kind == CIP_BROADCAST ? NULL : sends && in.at == NULL ? MPI_IN_PLACE : in.at,
                            stays ? MPI_IN_PLACE : out.at, block, MPI_BYTE, MPI_OP_NULL, comm);
    if (error == MPI_SUCCESS && out.copy != NULL && !(call->kind == CIP_BROADCAST && at_root))
        error = cip_pack(call->recv, recv_blocks * count, call->recv_type, out.at, 1, comm);
    free(in.copy);
    free(out.copy);
    return error;
}

/* Carries out a call if it is one for us: 1, with the error that it returns; else 0. */
static int cip_serve(const struct cip_call *call, int large, int *error)
{
    struct cip_entry *entry = NULL;
    enum cip_end end;
    MPI_Comm comm;
    int64_t block = 0;
    int rank = 0;

    if (!cip_is_on())
        return 0;
    end = cip_judge(call, &entry, &rank, &block);
    __sync_fetch_and_add(&cip_all.ends[large][call->function][end], 1);
    if (end != CIP_SERVED)
        return 0;
    cip_depth++;
    *error = cip_private(call->comm, &comm);
    if (*error == MPI_SUCCESS && cip_reduces(call))
        *error = cip_reduce(call, entry, rank, comm);
    else if (*error == MPI_SUCCESS)
        *error = cip_move(call, entry, rank, block, comm);
    cip_depth--;
    if (*error != MPI_SUCCESS)
        MPI_Comm_call_errhandler(call->comm, *error);
    return 1;
}
