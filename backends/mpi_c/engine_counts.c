/* ---- Calls with counts ---------------------------------------------------------------------------
 *
 * Shards have sizes of their own. A unit is an element of a reduction, else a byte: elements of other types
 * than bytes are packed before the call is carried out, unless they lie side by side, and unpacked after it.
 * A shard of any size is cut in the algorithm's number of pieces, at the same units on all ranks. A message
 * is of pieces of one shard; pieces without units are not sent.
 */

enum { GRAIN = 16 };

/* Whether the caller gave any numbers. */
static int is_given(const struct list *list)
{
    return list->narrow != NULL || list->wide != NULL || list->far != NULL;
}

static int64_t number_at(const struct list *list, int k)
{
    if (list->narrow != NULL)
        return list->narrow[k];
    return list->wide != NULL ? list->wide[k] : list->far[k];
}

/* The elements of a block, in the caller's type. */
static int64_t count_of(const struct side *side, int block)
{
    return is_given(&side->counts) ? number_at(&side->counts, side->skip + block) : side->count;
}

static int64_t size_of(const struct call *call, const struct side *side, int block)
{
    return count_of(side, block) * (call->plan->reduces ? 1 : side->element.size);
}

/* The lists are not read again once the blocks are laid out: those of a persistent request may change then. */
static int64_t size_of_shard(const struct call *call, int shard)
{
    const struct side *side = &call->sides[call->known];

    if (call->sizes != GIVEN)
        return call->ledger[shard];
    return side->extents != NULL ? side->extents[shard].amount : size_of(call, side, shard);
}

/* Measures the blocks of one buffer; MPI_ERR_NO_MEM for those that cannot be counted, with room to spare. */
static int take_side(struct call *call, int buffer, const struct side *given, MPI_Datatype type)
{
    struct side *side = &call->sides[buffer];
    int64_t most = sizeof(MPI_Aint) < 8 ? INT32_MAX : INT64_MAX / 4, width, elements = 0;
    int error, k;

    *side = *given;
    if (type == MPI_DATATYPE_NULL)
        return MPI_ERR_TYPE;
    error = measure(&side->element, type);
    if (error != MPI_SUCCESS)
        return error;
    width = side->element.extent < 0 ? -side->element.extent : side->element.extent;
    if (width < side->element.true_extent)
        width = side->element.true_extent;
    if (width < side->element.size)
        width = side->element.size;
    for (k = 0; k < side->blocks; k++) {
        int64_t count = count_of(side, k);

        if (count < 0)
            return MPI_ERR_COUNT;
        if (count > most / (side->blocks * (width > 0 ? width : 1)))
            return MPI_ERR_NO_MEM;
        elements += count;
    }
    if (elements == 0 || side->element.size == 0)
        return MPI_SUCCESS;
#if RELAYS
    if (only_relays(call)) { /* it needs the sizes of shards, and has no places for them */
        side->address = NULL;
        side->placed = 0;
        return MPI_SUCCESS;
    }
#endif /* RELAYS */
    if (side->address == MPI_IN_PLACE || (side->address == NULL && side->element.true_lb == 0) ||
        (side->placed && !is_given(&side->places)))
        return MPI_ERR_BUFFER;
    side->apart |= !call->plan->reduces && !(call->in_place && buffer == INPUT) && side->element.dense == 0;
    return MPI_SUCCESS;
}

/* The shard in a block. */
static int shard_of(const struct side *side, int block)
{
    return side->listed != NULL ? side->listed[block] : side->first + block * side->stride;
}

/* Writes the sizes that this rank knows and others do not, where they are exchanged. */
static void enter_sizes(struct call *call)
{
    const struct side *side = &call->sides[call->plan->root >= 0 ? call->known : INPUT];
    int k;

#if RELAYS
    if (call->sizes == FROM_HOLDERS || call->plan->relays > 0)
#else /* RELAYS */
    if (call->sizes == FROM_HOLDERS)
#endif /* RELAYS */
        memset(call->ledger, 0, (size_t)call->plan->shards * sizeof *call->ledger);
    for (k = 0; k < side->blocks; k++)
        call->ledger[shard_of(side, k)] = size_of(call, side, k);
}

/* Whether the sizes that this rank was given are those of the other ranks. */
static int as_entered(const struct call *call)
{
    const struct side *side = call->sides;
    int k;

    for (; side < call->sides + 2; side++)
        for (k = 0; k < side->blocks; k++)
            if (call->ledger[shard_of(side, k)] != size_of(call, side, k))
                return 0;
    return 1;
}

/* The most units that a rank has in a buffer, of an alltoall; else all, which are `total`. */
static int64_t most_units(const struct call *call, int64_t total)
{
    int ranks = call->plan->ranks, rows = call->plan->shards / ranks, r, k;
    int64_t most = 0;

    if (call->sizes != FROM_ALL)
        return total;
    for (r = 0; r < rows; r++) {
        int64_t row = 0, column = 0;

        for (k = 0; k < ranks; k++) {
            row += size_of_shard(call, r * ranks + k);
            column += size_of_shard(call, k * ranks + r);
        }
        most = row > most ? row : most;
        most = column > most ? column : most;
    }
    return most;
}

/* How much there is to do, once the sizes are known: chooses the algorithm, measures working memory as size_up()
 * does. Returns the units of all shards. */
static int64_t size_up_shards(struct call *call)
{
    const struct plan *plan = call->plan;
    const struct element *element = &call->element;
    int64_t width = element->extent < 0 ? -element->extent : element->extent;
    int64_t total = 0, row = 0, most = 0;
    int k;

    call->count = 0;
    for (k = 0; k < plan->shards; k++) {
        int64_t size = size_of_shard(call, k);

        row = call->sizes == FROM_ALL && k % plan->ranks == 0 ? size : row + size;
        most = row > most ? row : most;
        total += size;
        call->count = size > call->count ? size : call->count;
    }
    call->algorithm = choose(plan, element, most);
    call->row = algorithm_row[call->algorithm] + call->rank;
    call->chunks = algorithm_chunks[call->algorithm];
    divide(call);
    call->single = element->true_extent;
    call->span = cell(call) * width;
    call->whole = plan->reduces ? 0 : most_units(call, total);
    return element->size > 0 ? total : 0;
}

/* Where piece `nth` of a shard begins. */
static int64_t cut(const struct call *call, int64_t size, int64_t nth)
{
    int64_t found = nth * (size / call->chunks) + nth * (size % call->chunks) / call->chunks;

    return nth == call->chunks || call->grain == 0 ? found : found - found % call->grain;
}

static void locate_block(const struct call *call, int buffer, int64_t offset, int64_t chunks,
                         struct place *place)
{
    int64_t nth, size, origin;

    if (buffer == SCRATCH) {
        int segment = segment_of(call, offset), shard = (int)(segment_chunk[segment] / call->chunks);

        nth = segment_chunk[segment] % call->chunks;
        size = size_of_shard(call, shard);
        origin = call->starts[segment - rank_segments[call->row]] - cut(call, size, nth);
        nth += offset - segment_cell[segment];
    } else {
        const struct extent *extent = &call->sides[buffer].extents[offset / call->chunks];

        nth = offset % call->chunks;
        size = extent->amount;
        origin = extent->spot;
    }
    place->buffer = buffer == INPUT && call->in_place ? OUTPUT : buffer;
    place->packed = 0;
    place->begin = origin + cut(call, size, nth);
    place->end = origin + cut(call, size, nth + chunks);
    place->at = element_at(call, call->base[buffer], place->begin);
}

/* Finds where the segments of scratch begin; returns the units of all. */
static int64_t place_segments(const struct call *call, int64_t *starts)
{
    int first = rank_segments[call->row], end = rank_segments[call->row + 1], k;
    int64_t units = 0;

    for (k = first; k < end; k++) {
        int64_t cells = (k + 1 < end ? segment_cell[k + 1] : rank_scratch[call->row]) - segment_cell[k];
        int64_t nth = segment_chunk[k] % call->chunks;
        int64_t size = size_of_shard(call, (int)(segment_chunk[k] / call->chunks));

        if (starts != NULL)
            starts[k - first] = units;
        units += cut(call, size, nth + cells) - cut(call, size, nth);
        if (call->grain > 0)
            units += (call->grain - units % call->grain) % call->grain;
    }
    return units;
}

/* Finds where the blocks of a buffer are, in units; returns the units of all. */
static int64_t place_blocks(const struct call *call, const struct side *side, struct extent *extents)
{
    int64_t units = 0, elements = 0;
    int k;

    for (k = 0; k < side->blocks; k++) {
        int64_t size = size_of(call, side, k);

        if (extents != NULL) {
            struct extent *extent = &extents[k];

            extent->amount = size;
            extent->place = side->placed && size > 0 ? number_at(&side->places, side->skip + k) : elements;
            extent->spot = extent->place * (call->plan->reduces ? 1 : side->element.extent);
            if (side->apart)
                extent->spot = units;
        }
        elements += count_of(side, k);
        units += size;
    }
    return units;
}

/* Carves room for units of which element 0 is at the address returned. */
static char *carve_units(struct arena *arena, const struct call *call, int64_t units)
{
    const struct element *element = &call->element;
    int64_t width = element->extent < 0 ? -element->extent : element->extent;
    char *start;

    if (units <= 0)
        return carve(arena, 0);
    if (width > 0 && units > (PTRDIFF_MAX / 2 - call->single) / width) {
        arena->used = SIZE_MAX;
        return NULL;
    }
    start = carve(arena, (size_t)(units * width + call->single));
    if (start == NULL)
        return NULL;
    return further(start, -(element->true_lb + (element->extent < 0 ? (units - 1) * element->extent : 0)));
}

/* Lays out what calls with counts have in working memory: the blocks, scratch, and packed buffers. */
static void carve_blocks(struct arena *arena, struct call *call)
{
    int segments = rank_segments[call->row + 1] - rank_segments[call->row], b;

    for (b = OUTPUT; b >= INPUT; b--) {
        struct side *side = &call->sides[b];
        char *apart;
        int64_t units;

        side->extents = carve(arena, (size_t)side->blocks * sizeof *side->extents);
        units = place_blocks(call, side, side->extents);
        if (call->bounded)
            apart = carve_units(arena, call, call->whole);
        else
            apart = carve_units(arena, call, side->apart ? units : 0);
        if (arena->base == NULL)
            continue;
        call->base[b] = side->apart ? apart : (char *)side->address;
        if (b == INPUT && call->in_place) {
            const struct side *shared = &call->sides[OUTPUT];

            memcpy(side->extents, shared->extents + (side->skip - shared->skip),
                   (size_t)side->blocks * sizeof *side->extents);
            call->base[INPUT] = call->base[OUTPUT];
        }
    }
    call->starts = carve(arena, (size_t)segments * sizeof *call->starts);
    if (call->bounded)
        carve_cells(arena, call, rank_scratch[call->row]);
    else
        call->base[SCRATCH] = carve_units(arena, call, place_segments(call, call->starts));
}

/* Packs, or unpacks, a block of a buffer. */
static int repack_block(const struct call *call, int buffer, int block, int packs)
{
    const struct side *side = &call->sides[buffer];
    const struct extent *extent = &side->extents[block];
    struct call view = *call;
    struct place caller, kept;

    if (extent->amount == 0)
        return MPI_SUCCESS;
    view.element = side->element;
    caller.at = element_at(&view, side->address, extent->place);
    kept.at = further(call->base[buffer], extent->spot);
    caller.buffer = kept.buffer = buffer;
    caller.packed = 0;
    kept.packed = side->element.dense == 0;
    caller.begin = caller.end = kept.begin = kept.end = 0;
    return copy(&view, packs ? &caller : &kept, packs ? &kept : &caller, extent->amount / side->element.size);
}

/* Packs what is read in working memory. */
static int pack_blocks(const struct call *call)
{
    int buffer = call->in_place ? OUTPUT : INPUT, error = MPI_SUCCESS, k;
    const struct side *input = &call->sides[INPUT], *side = &call->sides[buffer];

    for (k = 0; k < input->blocks && side->apart && error == MPI_SUCCESS; k++)
        error = repack_block(call, buffer, input->skip - side->skip + k, 1);
    return error;
}

/* Unpacks what was written in working memory, where somebody wants it. */
static int unpack_blocks(const struct call *call)
{
    const struct side *side = &call->sides[OUTPUT];
    int error = MPI_SUCCESS, k;

    for (k = 0; k < side->blocks && side->apart && side->address != MPI_IN_PLACE && error == MPI_SUCCESS; k++)
        error = repack_block(call, OUTPUT, k, 0);
    return error;
}
