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

/* One collective of this file, and which of the algorithms are its. */
struct plan {
    int ranks, root; /* root: -1 where there is none */
    int reduces, twice;
    int algorithm, algorithms;
    int (*bind)(struct call *call, const void *send, void *recv);
};

/* One call. base[] holds the address of element 0 of each buffer (NULL where the rank has none).
 * In place the input is a part of the output: element k of it is element k + shift there. */
struct call {
    const struct plan *plan;
    struct element element;
    MPI_Op op;
    MPI_Comm comm;
    int tag; /* the first of this call's message tags */
    int rank;
    int row;        /* of the tables of ranks: the rank's in the algorithm that carries out the call */
    int64_t chunks; /* in which that algorithm cuts the count */
    int64_t count;
    char *base[3];
    int in_place;
    int64_t shift;
    int64_t copy_input;  /* elements of the input to be copied aside before anything is written */
    int64_t keep_output; /* elements of output to be built aside ... */
    char *deliver;       /* ... and copied here at the end (NULL: nobody wants them) */
};

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

/* A buffer is unusable where MPI_IN_PLACE has no meaning, and where it is NULL; but NULL is MPI_BOTTOM,
 * so it may be meant with a type that holds absolute addresses. */
static int unusable(const struct call *call, const void *buffer)
{
    return buffer == MPI_IN_PLACE || (buffer == NULL && call->element.true_lb == 0);
}

/* The algorithm that carries out a call: the first that is for so many bytes. */
static int choose(const struct plan *plan, const struct element *element, int64_t count)
{
    int algorithm = plan->algorithm, last = algorithm + plan->algorithms - 1;

    while (algorithm < last && element->size > 0 && count > algorithm_bytes[algorithm] / element->size)
        algorithm++;
    return algorithm;
}

/* Whether the elements of every buffer can be counted, with room to spare for offsets. */
static int countable(const struct call *call)
{
    const struct element *element = &call->element;
    int64_t width = element->extent < 0 ? -element->extent : element->extent;
    int64_t most = sizeof(MPI_Aint) < 8 ? INT32_MAX : INT64_MAX / 4;

    if (width < element->true_extent)
        width = element->true_extent;
    return call->count <= most / call->plan->ranks / (width > 0 ? width : 1);
}

static char *element_at(const struct call *call, const void *base, int64_t index)
{
    return (char *)base + (MPI_Aint)index * call->element.extent;
}

/* A count of elements is cut in nearly equal chunks; chunk k begins here. Buffers of several counts
 * (one block a rank) simply go on: the chunk after a count's last is the first of the second block. */
static int64_t edge(const struct call *call, int64_t chunk)
{
    int64_t block = chunk / call->chunks, nth = chunk % call->chunks;

    /* nth * count / chunks, of which the product may be too large for 64 bits */
    return block * call->count + nth * (call->count / call->chunks) +
           nth * (call->count % call->chunks) / call->chunks;
}

/* The most elements that a chunk can have. */
static int64_t cell(const struct call *call)
{
    return call->count / call->chunks + (call->count % call->chunks > 0);
}

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

/* Where a run of chunks lies: its first element, and which elements [begin, end) of a buffer it is. */
struct place {
    char *at;
    int buffer;
    int64_t begin, end;
};

static struct place locate(const struct call *call, int buffer, int64_t offset, int64_t chunks)
{
    struct place place;
    int64_t origin = 0;

    if (buffer == SCRATCH) {
        int segment = segment_of(call, offset);

        origin = segment_cell[segment] * cell(call) - edge(call, segment_chunk[segment]);
        offset += segment_chunk[segment] - segment_cell[segment];
    }
    place.buffer = buffer;
    place.begin = origin + edge(call, offset);
    place.end = origin + edge(call, offset + chunks);
    place.at = element_at(call, call->base[buffer], place.begin);
    if (buffer == INPUT && call->in_place) {
        place.buffer = OUTPUT;
        place.begin += call->shift;
        place.end += call->shift;
    }
    return place;
}

static int overlap(const struct place *a, const struct place *b)
{
    return a->buffer == b->buffer && a->begin < b->end && b->begin < a->end;
}

/* ---- Local work -------------------------------------------------------------------------------- */

/* to <- from. Types with gaps or shifted bounds are copied by the MPI, as a message to ourselves. */
static int copy(const struct call *call, char *from, char *to, int64_t elements)
{
    MPI_Datatype type = call->element.type;
    int me = call->rank, tag = call->tag + CHANNELS, error = MPI_SUCCESS;

    if (from == to || elements == 0)
        return MPI_SUCCESS;
    if (call->element.dense) {
        memcpy(to, from, (size_t)elements * call->element.dense);
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
