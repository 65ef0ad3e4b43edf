/* ---- Neighbourhood collectives --------------------------------------------------------------------------------------
 *
 * Blocks may have any sizes: the algorithm tells them to the ranks that forward them. Several blocks between two ranks are
 * packed, and are one block of the algorithm.
 */

/* Lists the blocks of one side of a call in the algorithm's order. In MPI_Neighbor_allgather one block goes to all. */
static void cip_list_side(struct cip_blocks *blocks, const struct cip_side *side, int same, int64_t *room)
{
    int64_t *counts = room, *places = room + side->listed;
    MPI_Datatype *types = (MPI_Datatype *)(room + 2 * side->listed);
    int k;

    for (k = 0; k < side->listed; k++) {
        int j = side->order[k];

        counts[k] = cip_count_of(blocks, j);
        places[k] = same ? 0 : blocks->places == NULL ? j * blocks->count : cip_place_of(blocks, j);
        if (blocks->types != NULL)
            types[k] = blocks->types[j];
    }
    blocks->counts = counts;
    blocks->places = places;
    blocks->types = blocks->types == NULL ? NULL : types;
    blocks->large = 1;
}

/* Where listed blocks are packed, in bytes: those of one rank one after the other, and this rank's own behind the
 * `others`. Returns the bytes of all. */
static int64_t cip_place_packed(const struct cip_blocks *blocks, const struct cip_side *side, int64_t *room, int64_t *others)
{
    int64_t *counts = room, *places = room + side->blocks, bytes = 0;
    int k, j;

    for (k = 0; k <= side->blocks; k++) {
        int end = k < side->blocks ? side->first[k + 1] : side->listed;
        int64_t wrong = 0, begin = *others = bytes;

        for (j = side->first[k]; j < end; j++) {
            int64_t count = cip_count_of(blocks, j), size = count == 0 ? 0 : cip_size(cip_type_of(blocks, j));

            if (count < 0 || size < 0)
                wrong = -1;
            else
                bytes += count * size;
        }
        if (k < side->blocks) {
            counts[k] = wrong ? wrong : bytes - begin;
            places[k] = begin;
        }
    }
    return bytes;
}

/* Packs or unpacks listed blocks, one after the other. */
static int cip_carry_packed(const struct cip_blocks *blocks, int number, char *memory, int unpack)
{
    int error = MPI_SUCCESS, k;

    for (k = 0; k < number && error == MPI_SUCCESS; k++) {
        int64_t count = cip_count_of(blocks, k), size = count > 0 ? cip_size(cip_type_of(blocks, k)) : 0;
        MPI_Aint lb, unit = 1;

        if (size <= 0)
            continue;
        if (blocks->types == NULL)
            error = MPI_Type_get_extent(blocks->type, &lb, &unit);
        if (error == MPI_SUCCESS)
            error = cip_pack((char *)blocks->data + cip_place_of(blocks, k) * unit, count, cip_type_of(blocks, k), memory,
                             unpack, MPI_COMM_SELF);
        memory += count * size;
    }
    return error;
}

/* A call of neighbours: what the program gave, listed in the algorithm's order, and what the algorithm gets. */
struct cip_neighbours {
    struct cip_blocks out, in;
    int sends, receives;
    struct cip_exchange exchange;
    int64_t *lists;
    char *packed;            /* what is sent, and behind it what is received; NULL: both are where the program has them */
    int64_t sent, into, got; /* bytes for other ranks, of all that is sent, and from other ranks */
    int64_t own;             /* bytes that stay on this rank */
};

/* Without memory this rank cannot take part, and the others would wait for it. */
static void *cip_need(size_t bytes)
{
    void *found = malloc(bytes + 1);

    if (found == NULL) {
        fprintf(stderr, "collc: no memory for a call of neighbours: %lld bytes\n", (long long)bytes);
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    }
    return found;
}

static void cip_meet(struct cip_neighbours *it, const struct cip_uneven *call, const struct cip_halo *halo)
{
    const struct cip_side *out = &halo->sides[0], *in = &halo->sides[1];
    size_t room = 3 * (size_t)(out->listed + in->listed) + 2 * (size_t)(out->blocks + in->blocks);
    int64_t *sent = cip_need(room * sizeof *sent), *got = sent + 3 * out->listed, all;
    struct cip_exchange *x = &it->exchange;

    it->lists = sent;
    it->out = call->out;
    it->in = call->in;
    it->sends = out->listed;
    it->receives = in->listed;
    it->packed = NULL;
    cip_list_side(&it->out, out, call->root == CIP_TO_ALL, sent);
    cip_list_side(&it->in, in, 0, got);
    x->send = it->out.data;
    x->recv = it->in.data;
    x->send_type = it->out.type;
    x->recv_type = it->in.type;
    if (halo->joins || it->out.types != NULL) {
        sent = got + 3 * in->listed;
        got = sent + 2 * out->blocks;
        it->into = cip_place_packed(&it->out, out, sent, &it->sent);
        all = cip_place_packed(&it->in, in, got, &it->got);
        it->own = it->into - it->sent < all - it->got ? it->into - it->sent : all - it->got;
        it->packed = cip_need((size_t)(it->into + all));
        x->send = it->packed;
        x->recv = it->packed + it->into;
        x->send_type = x->recv_type = MPI_BYTE;
    }
    x->send_counts = (const MPI_Count *)sent;
    x->recv_counts = (const MPI_Count *)got;
    x->send_places = (const MPI_Aint *)sent + out->blocks;
    x->recv_places = (const MPI_Aint *)got + in->blocks;
}

/* Packs what is sent, or unpacks what was received, where both are packed. A rank's blocks for itself are copied. */
static int cip_repack(const struct cip_neighbours *it, int unpack)
{
    int error;

    if (it->packed == NULL)
        return MPI_SUCCESS;
    if (unpack)
        return cip_carry_packed(&it->in, it->receives, it->packed + it->into, 1);
    error = cip_carry_packed(&it->out, it->sends, it->packed, 0);
    memcpy(it->packed + it->into + it->got, it->packed + it->sent, (size_t)it->own);
    return error;
}

static void cip_part(struct cip_neighbours *it)
{
    free(it->lists);
    free(it->packed);
}

/* Says whether a call may be one for us, before the neighbours are known. */
static enum cip_end cip_judge_around(const struct cip_uneven *call, int *rank, int *ranks)
{
    struct cip_entry *entry = NULL;
    enum cip_end end = cip_judge_frame(call, &entry, rank, ranks);

    if (end == CIP_OTHER_SIZE)
        cip_all.other_size = *ranks;
    if (end != CIP_OTHER_BYTES)
        return end;
    return cip_topology(call->comm) == MPI_UNDEFINED ? CIP_OTHER_NEIGHBOURS : CIP_SERVED;
}

/* Carries out a call of neighbours if it is one for us: 1, with the error that it returns; else 0. */
static int cip_serve_neighbours(const struct cip_uneven *call, int *error)
{
    struct cip_double *with = NULL;
    struct cip_neighbours it;
    enum cip_end end;
    int rank = 0, ranks = 0;

    if (!cip_is_on())
        return 0;
    *error = MPI_SUCCESS;
    end = cip_judge_around(call, &rank, &ranks);
    cip_depth++;
    if (end == CIP_SERVED && (with = cip_private(call->comm)) == NULL)
        end = CIP_NO_MEMORY;
    if (end == CIP_SERVED && with->halo.entry == NULL)
        end = CIP_OTHER_NEIGHBOURS;
    if (end == CIP_SERVED) {
        cip_meet(&it, call, &with->halo);
        *error = cip_repack(&it, 0);
        if (*error == MPI_SUCCESS)
            *error = with->halo.entry->exchange(&it.exchange, with->comm, CIP_AT_ONCE, NULL);
        if (*error == MPI_SUCCESS)
            *error = cip_repack(&it, 1);
        cip_part(&it);
        if (*error == CIP_NOT_BEGUN)
            end = CIP_NO_MEMORY;
    }
    cip_depth--;
    return cip_conclude_call(call->function, call->large, end, call->comm, *error);
}
