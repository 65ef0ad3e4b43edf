/* ---- Neighbourhood collectives --------------------------------------------------------------------------------------
 *
 * They are served where an algorithm has a block for each pair of neighbours of the communicator, in one direction, and
 * for no other. The ranks find that out when the communicator gets its double. Blocks may have any sizes: the algorithm
 * tells them to the ranks that forward them.
 */

/* The neighbours of a rank, as MPI numbers them: those that it sends to, or those that it receives from. */
struct cip_around {
    int number[2];
    int *ranks[2];
};

static int cip_cart_around(MPI_Comm comm, struct cip_around *around)
{
    int dims = 0, k, error = MPI_Cartdim_get(comm, &dims);

    around->number[0] = around->number[1] = 2 * dims;
    around->ranks[0] = malloc((4 * (size_t)dims + 1) * sizeof *around->ranks[0]);
    if (around->ranks[0] == NULL)
        return MPI_ERR_NO_MEM;
    around->ranks[1] = around->ranks[0] + 2 * dims;
    for (k = 0; k < dims && error == MPI_SUCCESS; k++)
        error = MPI_Cart_shift(comm, k, 1, &around->ranks[0][2 * k], &around->ranks[0][2 * k + 1]);
    memcpy(around->ranks[1], around->ranks[0], 2 * (size_t)dims * sizeof *around->ranks[0]);
    return error;
}

static int cip_graph_around(MPI_Comm comm, struct cip_around *around)
{
    int rank = 0, number = 0, error = MPI_Comm_rank(comm, &rank);

    if (error == MPI_SUCCESS)
        error = MPI_Graph_neighbors_count(comm, rank, &number);
    around->number[0] = around->number[1] = number;
    around->ranks[0] = around->ranks[1] = malloc(((size_t)number + 1) * sizeof *around->ranks[0]);
    if (around->ranks[0] == NULL)
        return MPI_ERR_NO_MEM;
    return error == MPI_SUCCESS ? MPI_Graph_neighbors(comm, rank, number, around->ranks[0]) : error;
}

static int cip_dist_graph_around(MPI_Comm comm, struct cip_around *around)
{
    int in = 0, out = 0, weighted = 0, error = MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted), *ranks;

    around->number[0] = out;
    around->number[1] = in;
    ranks = around->ranks[0] = malloc((2 * (size_t)(in + out) + 1) * sizeof *ranks);
    if (ranks == NULL)
        return MPI_ERR_NO_MEM;
    around->ranks[1] = ranks + out;
    if (error == MPI_SUCCESS) /* what stands behind are the weights */
        error = MPI_Dist_graph_neighbors(comm, in, ranks + out, ranks + in + out, out, ranks, ranks + 2 * in + out);
    return error;
}

/* Which topology a communicator has; MPI_UNDEFINED for none. */
static int cip_topology(MPI_Comm comm)
{
    int topology = MPI_UNDEFINED;

    return MPI_Topo_test(comm, &topology) == MPI_SUCCESS ? topology : MPI_UNDEFINED;
}

static int cip_look_around(MPI_Comm comm, struct cip_around *around)
{
    int topology = cip_topology(comm);

    if (topology == MPI_CART)
        return cip_cart_around(comm, around);
    if (topology == MPI_GRAPH)
        return cip_graph_around(comm, around);
    return topology == MPI_DIST_GRAPH ? cip_dist_graph_around(comm, around) : MPI_ERR_TOPOLOGY;
}

/* Finds for each block of an algorithm the neighbour that it is for. There may be neighbours MPI_PROC_NULL beside. */
static int cip_match(const int *peers, int blocks, const int *neighbours, int number, int *order)
{
    int k, j, others = 0;

    for (j = 0; j < number; j++)
        others += neighbours[j] != MPI_PROC_NULL;
    for (k = 0; k < blocks; k++) {
        for (j = 0; j < number && neighbours[j] != peers[k]; j++)
            ;
        if (j == number)
            return 0;
        order[k] = j;
    }
    return others == blocks; /* the peers of an algorithm are distinct */
}

/* Whether an algorithm is for the neighbours of this rank. */
static int cip_fits_around(struct cip_entry *entry, const struct cip_around *around, int rank, struct cip_halo *halo)
{
    int *peers = malloc((size_t)entry->ranks * sizeof *peers), fits = peers != NULL && halo->order != NULL;

    if (fits) {
        halo->entry = entry;
        halo->sends = entry->peers(rank, 0, peers);
        fits = cip_match(peers, halo->sends, around->ranks[0], around->number[0], halo->order);
    }
    if (fits) {
        halo->receives = entry->peers(rank, 1, peers);
        fits = cip_match(peers, halo->receives, around->ranks[1], around->number[1], halo->order + halo->sends);
    }
    free(peers);
    return fits;
}

/* Finds the algorithm for the neighbours of a communicator. Collective over `agrees`, unless that is MPI_COMM_NULL. */
static void cip_find_halo(MPI_Comm comm, MPI_Comm agrees, struct cip_halo *halo)
{
    struct cip_around around = {{0, 0}, {NULL, NULL}};
    struct cip_entry *entry;
    int rank = 0, ranks = 0, found, known;

    halo->entry = NULL;
    if (cip_topology(comm) == MPI_UNDEFINED || MPI_Comm_size(comm, &ranks) != MPI_SUCCESS)
        return;
    known = cip_look_around(comm, &around) == MPI_SUCCESS && MPI_Comm_rank(comm, &rank) == MPI_SUCCESS;
    halo->order = malloc(2 * (size_t)ranks * sizeof *halo->order);
    for (entry = cip_all.entries, found = 0; entry != NULL && !found; entry = entry->next) {
        if (entry->peers == NULL || entry->ranks != ranks)
            continue;
        found = known && cip_fits_around(entry, &around, rank, halo);
        if (agrees != MPI_COMM_NULL)
            found = !cip_fails_anywhere(agrees, found ? MPI_SUCCESS : MPI_ERR_TOPOLOGY);
    }
    if (!found)
        halo->entry = NULL;
    free(around.ranks[0]);
}

/* Lists one side of a call in the algorithm's order. In MPI_Neighbor_allgather one block goes to all neighbours. */
static void cip_list_side(struct cip_blocks *side, const int *order, int number, int same, int64_t *room)
{
    int64_t *counts = room, *places = room + number;
    MPI_Datatype *types = (MPI_Datatype *)(room + 2 * number);
    int k;

    for (k = 0; k < number; k++) {
        counts[k] = cip_count_of(side, order[k]);
        places[k] = same ? 0 : side->places == NULL ? order[k] * side->count : cip_place_of(side, order[k]);
        if (side->types != NULL)
            types[k] = side->types[order[k]];
    }
    side->counts = counts;
    side->places = places;
    side->types = side->types == NULL ? NULL : types;
    side->large = 1;
}

/* Where the blocks of a side that has a type for each are packed, in bytes. Returns the bytes of all. */
static int64_t cip_place_packed(const struct cip_blocks *side, int number, int64_t *room)
{
    int64_t *counts = room, *places = room + number, bytes = 0;
    int k;

    for (k = 0; k < number; k++) {
        int64_t count = cip_count_of(side, k);

        counts[k] = count > 0 ? count * cip_size(side->types[k]) : count;
        places[k] = bytes;
        bytes += counts[k] > 0 ? counts[k] : 0;
    }
    return bytes;
}

/* Packs or unpacks the blocks of such a side. */
static int cip_carry_packed(const struct cip_blocks *side, const MPI_Aint *places, int number, void *memory, int unpack)
{
    int error = MPI_SUCCESS, k;

    for (k = 0; k < number && error == MPI_SUCCESS; k++) {
        int64_t count = cip_count_of(side, k);

        if (count > 0 && cip_size(side->types[k]) > 0)
            error = cip_pack((char *)side->data + cip_place_of(side, k), count, side->types[k],
                             (char *)memory + places[k], unpack, MPI_COMM_SELF);
    }
    return error;
}

/* A call of neighbours: what the program gave, and what the algorithm gets, both in the algorithm's order. */
struct cip_neighbours {
    struct cip_blocks out, in;
    int sends, receives;
    struct cip_exchange exchange;
    int64_t *lists;
    char *packed;
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
    int gathers = call->root == CIP_TO_ALL, n = halo->sends, m = halo->receives;
    int64_t *lists = it->lists = cip_need(5 * (size_t)(n + m) * sizeof *lists), into;
    struct cip_exchange *x = &it->exchange;

    it->out = call->out;
    it->in = call->in;
    it->sends = n;
    it->receives = m;
    it->packed = NULL;
    cip_list_side(&it->out, halo->order, n, gathers, lists);
    cip_list_side(&it->in, halo->order + n, m, 0, lists + 3 * n);
    x->send = it->out.data;
    x->recv = it->in.data;
    x->send_type = it->out.type;
    x->recv_type = it->in.type;
    if (it->out.types != NULL) {
        into = cip_place_packed(&it->out, n, lists + 3 * (n + m));
        it->packed = cip_need((size_t)(into + cip_place_packed(&it->in, m, lists + 5 * n + 3 * m)));
        x->send = it->packed;
        x->recv = it->packed + into;
        x->send_type = x->recv_type = MPI_BYTE;
    }
    x->send_counts = (const MPI_Count *)(it->packed == NULL ? lists : lists + 3 * (n + m));
    x->recv_counts = (const MPI_Count *)(it->packed == NULL ? lists + 3 * n : lists + 5 * n + 3 * m);
    x->send_places = (const MPI_Aint *)x->send_counts + n;
    x->recv_places = (const MPI_Aint *)x->recv_counts + m;
}

/* Packs what is sent, or unpacks what was received, where the call has a type for each block. */
static int cip_repack(const struct cip_neighbours *it, int unpack)
{
    if (it->packed == NULL)
        return MPI_SUCCESS;
    if (unpack)
        return cip_carry_packed(&it->in, it->exchange.recv_places, it->receives, it->exchange.recv, 1);
    return cip_carry_packed(&it->out, it->exchange.send_places, it->sends, (void *)it->exchange.send, 0);
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
