/* ---- Elements and buffers ---------------------------------------------------------------------- */

enum { INPUT, OUTPUT, SCRATCH };

/* The element type, measured once a call. Element k of an array at p lies at p + k * extent. */
struct element {
    MPI_Datatype type;
    MPI_Aint extent, true_lb, true_extent;
    int64_t size; /* bytes of data */
    size_t dense; /* bytes of an element where memcpy may move elements, otherwise 0 */
};

struct call;
struct mail;
#if COUNTS

/* Numbers of the caller, one for each block: of one of these types, or none. */
struct list {
    const int *narrow;
    const MPI_Count *wide;
    const MPI_Aint *far;
};

/* What the caller of a function with counts gave. */
struct arguments {
    const void *send;
    void *recv;
    int64_t send_count, recv_count;
    struct list send_counts, send_places, recv_counts, recv_places;
    MPI_Datatype send_type, recv_type;
    MPI_Op op;
    int root;
};

/* A block of a buffer, in units: how long it is, and where it begins. `place` is where the caller's begins, in
 * elements of the caller's type. */
struct extent {
    int64_t amount, spot, place;
};

/* The blocks of a rank's input or output. Block k holds shard first + k * stride, or the one that is listed. */
struct side {
    struct element element; /* the caller's */
    const void *address;
    int blocks, skip, first, stride; /* skip: blocks of the lists before the first of ours */
    const int32_t *listed;
    struct list counts, places;
    int64_t count;          /* of each block where there is no list of counts */
    int placed;             /* whether blocks have places; else they lie one after the other */
    int apart;              /* whether they are packed in working memory while the call is carried out */
    struct extent *extents;
};

/* How ranks come to know the sizes of all shards. */
enum sizes { GIVEN, FROM_ROOT, FROM_ALL, FROM_HOLDERS };
#endif /* COUNTS */

/* One collective of this file, and which of the algorithms are its. */
struct plan {
    int ranks, root; /* root: -1 where there is none */
    int reduces, twice;
    int algorithm, algorithms;
#if RELAYS
    int relays; /* ranks of the communicator after `ranks`: they have no data, and forward those of others */
#endif /* RELAYS */
#if ROOTS
    int roots, moves, images; /* the first of its roots, moves and images of ranks; roots is -1 where it has one root */
#endif /* ROOTS */
    int (*bind)(struct call *call, const void *send, void *recv);
#if COUNTS
    int shards; /* 0: all of one size */
    int (*bind_counts)(struct call *call, const struct arguments *given);
    const int32_t *begins, *listed; /* the shards in each rank's input and output, where they are listed */
#endif /* COUNTS */
};

/* One call. base[] holds the address of element 0 of each buffer (NULL where the rank has none).
 * In place the input is a part of the output: element k of it is element k + shift there. Where elements
 * are only moved, and have gaps, those in working memory are packed: so all ranks need memory for the
 * same bytes, however each of them describes its elements. */
struct call {
    const struct plan *plan;
    struct element element;
    MPI_Op op;
    MPI_Comm comm;
    int tag; /* the first of this call's message tags */
    struct mail *mail; /* for its small messages; NULL: all are sent by MPI */
    int rank;
#if ROOTS
    int root, part; /* the root of this call (-1: none), and the rank of the plan whose part this rank takes */
    int shuffles;   /* whether a call of this collective may need, at the root, ... */
    int shuffled;   /* ... its blocks (of OUTPUT, or of INPUT) in the order of the plan's ranks; -1: this one does not */
    char *ordered;  /* where they are in the order of ranks */
#endif /* ROOTS */
    int algorithm;
    int row;        /* of the tables of ranks: the rank's in the algorithm that carries out the call */
#if TURNS
    int turn; /* by how many boxes that row's rank is turned to this one */
#endif /* TURNS */
    int64_t chunks; /* in which that algorithm cuts the count */
    int64_t count;
    int64_t each, rest; /* of the count: elements of every chunk, and how many chunks have one more */
    char *base[3];
    int packed[3]; /* of each buffer: whether its elements are */
    int compact;   /* whether those in working memory are */
    int64_t span, single; /* bytes there of a cell, and of an element alone, each at the most */
    int in_place;
    int64_t shift;
    int aside; /* whether a call of this collective may need these, at the root where there is one: */
    int64_t copy_input;  /* elements of the input to be copied aside before anything is written */
    int64_t keep_output; /* elements of output to be built aside ... */
    char *deliver;       /* ... and copied here at the end (NULL: nobody wants them) */
#if COUNTS
    /* Of calls with counts. A unit is an element of a reduction, else a byte: ranks may describe the same
     * data by different types. */
    struct side sides[2];
    enum sizes sizes;
    int known;        /* GIVEN: the side that has all shards */
    int64_t *ledger;  /* else: the size of each shard */
    int64_t *starts;  /* where each segment of scratch begins */
    int64_t whole;    /* bytes that any rank may have to pack or unpack, the most */
    int64_t grain;    /* pieces begin at multiples of these units; 0: at any */
    int bounded;      /* whether to lay out for the largest call that a grant is for, not for this one */
#endif /* COUNTS */
};

#if ROOTS
/* The plan of one root serves others: an automorphism of the network takes its root there, and every rank does what
 * the rank that it is the image of does in the plan. It is made of moves, one after the other. */
static int part_of(const struct plan *plan, int root, int rank)
{
    const int first = plan->roots;

    if (first < 0)
        return rank;
    for (; root_from[first + root] != root; root = root_from[first + root]) {
        int move = move_back[plan->moves + root_move[first + root]];

        rank = move_image[plan->images + move * plan->ranks + rank];
    }
    return rank;
}

/* The rank that takes the part of one of the plan's. */
static int taker_of(const struct plan *plan, int root, int part)
{
    int from = plan->roots < 0 ? root : root_from[plan->roots + root];

    if (from == root)
        return part;
    return move_image[plan->images + root_move[plan->roots + root] * plan->ranks + taker_of(plan, from, part)];
}

/* The plan that serves a root, among those of one function; NULL where there is none. */
static const struct plan *plan_of(const struct plan *plan, int orbits, int root)
{
    int k, first = plan->roots, planned = root;

    if (root < 0 || root >= plan->ranks || !root_served[first + root])
        return NULL;
    while (root_from[first + planned] != planned)
        planned = root_from[first + planned];
    for (k = 0; k < orbits; k++)
        if (plan[k].root == planned)
            return &plan[k];
    return NULL;
}

#endif /* ROOTS */
#if RELAYS
/* Whether this rank only forwards data. Its buffers are ignored. */
static int only_relays(const struct call *call)
{
    return call->rank >= call->plan->ranks;
}

#endif /* RELAYS */
static int measure(struct element *element, MPI_Datatype type)
{
    MPI_Aint lb;
    MPI_Count size;
    int error;

    element->type = type;
    error = MPI_Type_get_extent(type, &lb, &element->extent);
    if (error == MPI_SUCCESS)
        error = MPI_Type_get_true_extent(type, &element->true_lb, &element->true_extent);
    if (error == MPI_SUCCESS)
#if COLLC_LARGE_COUNTS
        error = MPI_Type_size_c(type, &size);
#else
        error = MPI_Type_size_x(type, &size);
#endif
    if (error != MPI_SUCCESS)
        return error;
    if (size == MPI_UNDEFINED)
        return MPI_ERR_TYPE;
    element->size = size;
    element->dense = 0;
    if (size > 0 && size == element->extent && size == element->true_extent && lb == 0 &&
        element->true_lb == 0)
        element->dense = (size_t)size;
    return MPI_SUCCESS;
}

#if EVEN
/* A buffer is unusable where MPI_IN_PLACE has no meaning, and where it is NULL; but NULL is MPI_BOTTOM,
 * so it may be meant with a type that holds absolute addresses. */
static int unusable(const struct call *call, const void *buffer)
{
    return buffer == MPI_IN_PLACE || (buffer == NULL && call->element.true_lb == 0);
}
#endif /* EVEN */

/* Below this, products of three numbers fit, and need no division to be compared. */
enum { SHORT = 1 << 20 };

/* Whether so many elements of a size have more bytes than these. */
static int exceeds(int64_t count, int64_t size, int64_t bytes)
{
    return (count | size) < SHORT ? count * size > bytes : size > 0 && count > bytes / size;
}

/* The algorithm that carries out a call: the first that is for so many bytes. */
static int choose(const struct plan *plan, const struct element *element, int64_t count)
{
    int algorithm = plan->algorithm, last = algorithm + plan->algorithms - 1;

    while (algorithm < last && exceeds(count, element->size, algorithm_bytes[algorithm]))
        algorithm++;
    return algorithm;
}

#if EVEN
/* Whether the elements of every buffer can be counted, with room to spare for offsets. */
static int countable(const struct call *call)
{
    const struct element *element = &call->element;
    int64_t width = element->extent < 0 ? -element->extent : element->extent;
    int64_t most = sizeof(MPI_Aint) < 8 ? INT32_MAX : INT64_MAX / 4;

    if (width < element->true_extent)
        width = element->true_extent;
    if (width < element->size)
        width = element->size;
    if ((call->count | width | call->plan->ranks) < SHORT)
        return sizeof(MPI_Aint) >= 8 || call->count * width * call->plan->ranks <= most;
    return call->count <= most / call->plan->ranks / (width > 0 ? width : 1);
}
#endif /* EVEN */

/* Some bytes further; in integers, for addresses may be absolute, and buffers begin at MPI_BOTTOM. */
static char *further(const void *address, int64_t bytes)
{
    return (char *)((uintptr_t)address + (uintptr_t)bytes);
}

static char *element_at(const struct call *call, const void *base, int64_t index)
{
    return further(base, index * call->element.extent);
}

/* Likewise in working memory. */
static char *kept_at(const struct call *call, const void *base, int64_t index)
{
    return further(base, index * (call->compact ? call->element.size : call->element.extent));
}

#if EVEN
/* A count of elements is cut in nearly equal chunks; chunk k begins here. Buffers of several counts
 * (one block a rank) simply go on: the chunk after a count's last is the first of the second block. */
static int64_t edge(const struct call *call, int64_t chunk)
{
    int64_t block = 0, nth = chunk;

    if (chunk == 0 || chunk == call->chunks) /* the ends of a count need no division */
        return chunk == 0 ? 0 : call->count;
    if (chunk >= call->chunks) {
        block = chunk / call->chunks;
        nth = chunk % call->chunks;
    }
    /* nth * count / chunks, of which the product may be too large for 64 bits */
    return block * call->count + nth * call->each + (call->rest > 0 ? nth * call->rest / call->chunks : 0);
}
#endif /* EVEN */

/* Divides the count by the chunks, once a call. */
static void divide(struct call *call)
{
    call->each = call->count / call->chunks;
    call->rest = call->count % call->chunks;
}

/* The most elements that a chunk can have. */
static int64_t cell(const struct call *call)
{
#if COUNTS
    return call->each + (call->rest > 0) + 2 * call->grain;
#else /* COUNTS */
    return call->each + (call->rest > 0);
#endif /* COUNTS */
}

#if EVEN
/* How a call's elements lie in working memory. What is measured depends on the arguments that all ranks
 * have in common: of a reduction, count and type; else, count and bytes of data. (Elements that lie on top of
 * each other are no elements to receive into: a rank may have them, all alone.) */
static void size_up(struct call *call)
{
    const struct element *element = &call->element;
    int64_t width = element->extent < 0 ? -element->extent : element->extent;

    call->single = element->true_extent;
    if (!call->plan->reduces) {
        call->compact = width > element->size || element->true_extent > element->size;
        call->single = element->size;
    }
    call->span = cell(call) * (call->compact ? element->size : width);
}
#endif /* EVEN */

/* Scratch is made of segments, each of which holds consecutive chunks of the vector side by side. A
 * segment begins where all before it end if every chunk is a full cell. Returns a cell's segment. */
static int segment_of(const struct call *call, int64_t offset)
{
    int low = rank_segments[call->row], high = rank_segments[call->row + 1];

    while (high - low > 1) {
        int middle = low + (high - low) / 2;

        if (segment_cell[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#if GROUPS
#if WORDS
/* The product where the group is none of vectors: an element is a generator times another element, and so on until
 * 0, which is the identity. */
static int64_t product_of_word(int algorithm, int64_t rank, int64_t element)
{
    int64_t order = group_sizes[algorithm_group[algorithm]];
    int64_t words = algorithm_words[algorithm] - 1, times = algorithm_times[algorithm];

    for (; element > 0; element = word_rest[words + element])
        rank = generator_times[times + word_generator[words + element] * order + rank];
    return rank;
}

#endif /* WORDS */
/* Some algorithms list the blocks and steps of rank 0 only. Every other rank does the same, with its peers and
 * shards multiplied by its number in a group: that of vectors, the last coordinate of which varies fastest, modulo
 * the sizes of the group. */
static int64_t product(const struct call *call, int64_t element)
{
    int first = algorithm_group[call->algorithm], k = algorithm_sizes[call->algorithm];
#if ORBITS
    int64_t rank = call->rank / algorithm_width[call->algorithm], weight = 1, found = 0;
#else /* ORBITS */
    int64_t rank = call->rank, weight = 1, found = 0;
#endif /* ORBITS */

#if WORDS
    if (algorithm_words[call->algorithm] > 0)
        return product_of_word(call->algorithm, rank, element);
#endif /* WORDS */
    while (k-- > 0) {
        int64_t size = group_sizes[first + k];

        found += (rank / weight % size + element / weight % size) % size * weight;
        weight *= size;
    }
    return found;
}

#if ORBITS
/* What a rank or shard of the tables is for this rank. The tables list the first ranks, one of every orbit: rank r is
 * moved by element r / width, and does what rank r % width of the tables does. */
static int64_t image_of(const struct call *call, int64_t number)
{
    int64_t width = algorithm_width[call->algorithm];

    return product(call, number / width) * width + number % width;
}

#endif /* ORBITS */
#if TURNS
/* Some algorithms list the ranks that a rotation of boxes keeps, and those of one box. Their ranks, and the units of the
 * vector, have places: first those that stay, then box after box. Returns the number at the place where this rank has
 * what the tables have at another one; `list' has the numbers at all places. */
static int64_t turned(const struct call *call, int64_t place, int64_t kept, int64_t box, int64_t list)
{
    int64_t boxes = group_sizes[algorithm_group[call->algorithm]];

    if (place >= kept)
        place = kept + (place - kept + call->turn * box) % (boxes * box);
    return turn_places[list + place];
}

/* Sets the row of a rank, and its turn. */
static void find_turn(struct call *call)
{
    int kept = algorithm_kept[call->algorithm], box = algorithm_width[call->algorithm] - kept, place = 0;

    while (turn_places[algorithm_ranks[call->algorithm] + place] != (uint32_t)call->rank)
        place++;
    call->turn = place < kept ? 0 : (place - kept) / box;
    call->row = algorithm_row[call->algorithm] + (place < kept ? place : kept + (place - kept) % box);
}

#endif /* TURNS */
/* A peer of this rank, given the one in the tables. */
static int peer_of(const struct call *call, int peer)
{
#if TURNS
    int kept = algorithm_kept[call->algorithm];

    if (algorithm_unit[call->algorithm] > 0 && peer >= 0)
        return (int)turned(call, peer, kept, algorithm_width[call->algorithm] - kept,
                           algorithm_ranks[call->algorithm]);
#endif /* TURNS */
#if ORBITS
    return algorithm_sizes[call->algorithm] > 0 && peer >= 0 ? (int)image_of(call, peer) : peer;
#else /* ORBITS */
    return algorithm_sizes[call->algorithm] > 0 && peer >= 0 ? (int)product(call, peer) : peer;
#endif /* ORBITS */
}

/* A chunk of this rank's buffer, given the one in the tables: buffers of the whole vector hold shards in order. */
static int64_t chunk_of(const struct call *call, int buffer, int64_t chunk)
{
    int64_t chunks = algorithm_shard[call->algorithm];

    if ((algorithm_moves[call->algorithm] >> buffer & 1) == 0)
        return chunk;
#if TURNS
    if (algorithm_unit[call->algorithm] > 0) {
        int64_t unit = algorithm_unit[call->algorithm];

        return turned(call, chunk / unit, algorithm_kept_units[call->algorithm],
                      algorithm_box_units[call->algorithm], algorithm_units[call->algorithm])
            * unit + chunk % unit;
    }
#endif /* TURNS */
#if ORBITS
    return image_of(call, chunk / chunks) * chunks + chunk % chunks;
#else /* ORBITS */
    return product(call, chunk / chunks) * chunks + chunk % chunks;
#endif /* ORBITS */
}

#endif /* GROUPS */
/* Where a run of chunks lies: its first element, and which elements [begin, end) of a buffer it is. */
struct place {
    char *at;
    int buffer, packed;
    int64_t begin, end;
};

#if COUNTS
static void locate_block(const struct call *call, int buffer, int64_t offset, int64_t chunks,
                         struct place *place);

#endif /* COUNTS */
static void locate(const struct call *call, int buffer, int64_t offset, int64_t chunks, struct place *place)
{
#if EVEN
    int64_t origin = 0;

#if COUNTS
    if (call->plan->shards > 0) {
        locate_block(call, buffer, offset, chunks, place);
        return;
    }
#endif /* COUNTS */
#if GROUPS
    offset = chunk_of(call, buffer, offset);
#endif /* GROUPS */
    if (buffer == SCRATCH) {
        int segment = segment_of(call, offset);

        origin = segment_cell[segment] * cell(call) - edge(call, segment_chunk[segment]);
        offset += segment_chunk[segment] - segment_cell[segment];
    }
    place->buffer = buffer;
    place->packed = call->packed[buffer];
    place->begin = origin + edge(call, offset);
    place->end = origin + edge(call, offset + chunks);
    place->at = (place->packed ? kept_at : element_at)(call, call->base[buffer], place->begin);
    if (buffer == INPUT && call->in_place) {
        place->buffer = OUTPUT;
        place->begin += call->shift;
        place->end += call->shift;
    }
#else /* EVEN */
    locate_block(call, buffer, offset, chunks, place);
#endif /* EVEN */
}

static int overlap(const struct place *a, const struct place *b)
{
    return a->buffer == b->buffer && a->begin < b->end && b->begin < a->end;
}

/* ---- Messages ---------------------------------------------------------------------------------- */

#if !COLLC_LARGE_COUNTS
/* A type of `elements` elements, for messages whose count does not fit an int. */
static int wide_type(MPI_Datatype type, MPI_Aint extent, int64_t elements, MPI_Datatype *wide)
{
    MPI_Datatype types[2];
    int counts[2], error;
    MPI_Aint displacements[2];

    error = MPI_Type_contiguous(COLLC_MESSAGE_MAX, type, &types[0]);
    if (error != MPI_SUCCESS)
        return error;
    types[1] = type;
    counts[0] = (int)(elements / COLLC_MESSAGE_MAX);
    counts[1] = (int)(elements % COLLC_MESSAGE_MAX);
    displacements[0] = 0;
    displacements[1] = (MPI_Aint)counts[0] * COLLC_MESSAGE_MAX * extent;
    error = MPI_Type_create_struct(2, counts, displacements, types, wide);
    MPI_Type_free(&types[0]);
    if (error == MPI_SUCCESS && (error = MPI_Type_commit(wide)) != MPI_SUCCESS)
        MPI_Type_free(wide);
    return error;
}
#endif

/* Starts a message of more elements, or packed bytes, than an int holds. */
static int start_large(const struct call *call, const struct place *place, int64_t number, int sends,
                       int peer, int tag, MPI_Request *request)
{
    MPI_Datatype type = place->packed ? MPI_PACKED : call->element.type;
#if COLLC_LARGE_COUNTS
    return (sends ? MPI_Isend_c(place->at, number, type, peer, tag, call->comm, request)
                  : MPI_Irecv_c(place->at, number, type, peer, tag, call->comm, request));
#else
    int error = wide_type(type, place->packed ? 1 : call->element.extent, number, &type);

    if (error != MPI_SUCCESS)
        return error;
    error = sends ? MPI_Isend(place->at, 1, type, peer, tag, call->comm, request)
                  : MPI_Irecv(place->at, 1, type, peer, tag, call->comm, request);
    MPI_Type_free(&type);
    return error;
#endif
}

/* Starts a message of elements: out of, or into, a place. */
static int start(const struct call *call, const struct place *place, int64_t elements, int sends,
                 int peer, int tag, MPI_Request *request)
{
    MPI_Datatype type = place->packed ? MPI_PACKED : call->element.type;
    int64_t number = place->packed ? elements * call->element.size : elements;

    if (number > COLLC_MESSAGE_MAX)
        return start_large(call, place, number, sends, peer, tag, request);
    if (sends)
        return MPI_Isend(place->at, (int)number, type, peer, tag, call->comm, request);
    return MPI_Irecv(place->at, (int)number, type, peer, tag, call->comm, request);
}

/* ---- Local work -------------------------------------------------------------------------------- */

/* Packs or unpacks elements, by a message to ourselves. */
static int repack(const struct call *call, const struct place *from, const struct place *to,
                  int64_t elements)
{
    MPI_Request requests[2];
    int me = call->rank, tag = call->tag + CHANNELS, error;

    error = start(call, to, elements, 0, me, tag, &requests[0]);
    if (error != MPI_SUCCESS)
        return error;
    error = start(call, from, elements, 1, me, tag, &requests[1]);
    if (error == MPI_SUCCESS)
        return MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    return error;
}

/* to <- from. Types with gaps or shifted bounds are copied by the MPI, as a message to ourselves. */
static int copy(const struct call *call, const struct place *source, const struct place *target,
                int64_t elements)
{
    MPI_Datatype type = call->element.type;
    char *from = source->at, *to = target->at;
    int me = call->rank, tag = call->tag + CHANNELS, error = MPI_SUCCESS;
    size_t dense = source->packed ? (size_t)call->element.size : call->element.dense;

    if (elements == 0)
        return MPI_SUCCESS;
    if (source->packed != target->packed)
        return repack(call, source, target, elements);
    if (from == to)
        return MPI_SUCCESS;
    if (dense) {
        memcpy(to, from, (size_t)elements * dense);
        return MPI_SUCCESS;
    }
    while (elements > 0 && error == MPI_SUCCESS) {
        int now = elements < COLLC_MESSAGE_MAX ? (int)elements : COLLC_MESSAGE_MAX;

        error = MPI_Sendrecv(from, now, type, me, tag, to, now, type, me, tag, call->comm,
                             MPI_STATUS_IGNORE);
        from = element_at(call, from, now);
        to = element_at(call, to, now);
        elements -= now;
    }
    return error;
}

/* to <- from op to */
static int combine(const struct call *call, char *from, char *to, int64_t elements)
{
    int error = MPI_SUCCESS;

    while (elements > 0 && error == MPI_SUCCESS) {
        int now = elements < COLLC_MESSAGE_MAX ? (int)elements : COLLC_MESSAGE_MAX;

        error = MPI_Reduce_local(from, to, now, call->element.type, call->op);
        from = element_at(call, from, now);
        to = element_at(call, to, now);
        elements -= now;
    }
    return error;
}
