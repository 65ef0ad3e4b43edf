/* ---- The neighbours of a communicator ---------------------------------------------------------------------------------
 *
 * Neighbourhood collectives are served where an algorithm has a block for each pair of neighbours of the communicator, in
 * one direction, and for no other. The ranks find that out when the communicator gets its double.
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

/* Which block of an algorithm is for the nth one between the same two ranks; the last one is for all that follow. */
static int cip_block_of(const int *peers, int blocks, int peer, int nth)
{
    int k, found = -1;

    for (k = 0; k < blocks && nth >= 0; k++)
        if (peers[k] == peer) {
            found = k;
            nth--;
        }
    return found;
}

/* Finds for each block of an algorithm the neighbours that it is for. There may be neighbours MPI_PROC_NULL beside. Of two
 * with the same rank, that with the smaller `index ^ swaps` is the first. There is room for `number` blocks. */
static int cip_match(const int *peers, const int *neighbours, int number, int swaps, int rank, struct cip_side *side,
                     int *blocks)
{
    int k, j, before, found = 0;

    for (j = 0; j < number; j++) {
        int peer = neighbours[j ^ swaps], nth = 0;

        for (before = 0; before < j; before++)
            nth += neighbours[before ^ swaps] == peer;
        blocks[j] = cip_block_of(peers, side->blocks, peer, nth);
        if (blocks[j] < 0 && peer == rank)
            blocks[j] = side->blocks;
        else if (blocks[j] < 0 && peer != MPI_PROC_NULL)
            return 0;
    }
    for (k = 0; k <= side->blocks; k++) {
        if (k < side->blocks && cip_block_of(neighbours, number, peers[k], 0) < 0)
            return 0;
        side->first[k] = found;
        for (j = 0; j < number; j++)
            if (blocks[j] == k)
                side->order[found++] = j ^ swaps;
    }
    side->listed = found;
    return 1;
}

/* Finds what an algorithm's blocks are for on one side of a rank; 0: the algorithm is for other neighbours. */
static int cip_fits_side(const struct cip_entry *entry, const struct cip_around *around, int way, int swaps, int rank,
                         struct cip_side *side)
{
    int number = around->number[way], blocks = entry->peers(rank, way, NULL), fits;
    int *peers = malloc(((size_t)blocks + (size_t)number + 1) * sizeof *peers);

    side->blocks = blocks;
    side->first = malloc(((size_t)blocks + (size_t)number + 1) * sizeof *side->first);
    fits = peers != NULL && side->first != NULL;
    if (fits) {
        side->order = side->first + blocks + 1;
        entry->peers(rank, way, peers);
        fits = cip_match(peers, around->ranks[way], number, swaps, rank, side, peers + blocks);
    }
    free(peers);
    return fits;
}

static void cip_leave_around(struct cip_halo *halo)
{
    free(halo->sides[0].first);
    free(halo->sides[1].first);
    memset(halo, 0, sizeof *halo);
}

/* Whether an algorithm is for the neighbours of this rank. Between two ranks blocks arrive in the order in which they are
 * sent, but on Cartesian communicators what is sent in one direction arrives from the other: of each dimension both swap. */
static int cip_fits_around(struct cip_entry *entry, const struct cip_around *around, int topology, int rank,
                           struct cip_halo *halo)
{
    int way, k;

    cip_leave_around(halo);
    halo->entry = entry;
    for (way = 0; way < 2; way++) {
        struct cip_side *side = &halo->sides[way];

        if (!cip_fits_side(entry, around, way, way == 1 && topology == MPI_CART, rank, side))
            return 0;
        for (k = 0; k <= side->blocks; k++)
            halo->joins |= side->first[k] != k;
        halo->joins |= side->listed != side->blocks;
    }
    return 1;
}

/* Finds the algorithm for the neighbours of a communicator. Collective over `agrees`, unless that is MPI_COMM_NULL. */
static void cip_find_halo(MPI_Comm comm, MPI_Comm agrees, struct cip_halo *halo)
{
    struct cip_around around = {{0, 0}, {NULL, NULL}};
    struct cip_entry *entry;
    int rank = 0, ranks = 0, topology = cip_topology(comm), found, known;

    if (topology == MPI_UNDEFINED || MPI_Comm_size(comm, &ranks) != MPI_SUCCESS)
        return;
    known = cip_look_around(comm, &around) == MPI_SUCCESS && MPI_Comm_rank(comm, &rank) == MPI_SUCCESS;
    for (entry = cip_all.entries, found = 0; entry != NULL && !found; entry = entry->next) {
        if (entry->peers == NULL || entry->ranks != ranks)
            continue;
        found = known && cip_fits_around(entry, &around, topology, rank, halo);
        if (agrees != MPI_COMM_NULL)
            found = !cip_fails_anywhere(agrees, found ? MPI_SUCCESS : MPI_ERR_TOPOLOGY);
    }
    if (!found)
        cip_leave_around(halo);
    free(around.ranks[0]);
}
