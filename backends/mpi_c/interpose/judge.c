/* ---- Which calls are served ---------------------------------------------------------------------------- */

/* A call as the program made it. */
struct cip_call {
    int function, kind;
    const void *send;
    void *recv;
    int64_t send_count, recv_count;
    MPI_Datatype send_type, recv_type;
    MPI_Op op;
    int root;
    MPI_Comm comm;
    int unequal; /* counts of MPI_Reduce_scatter that differ */
};

/* Classes of element types that predefined operations distinguish. */
enum { CIP_INTEGER = 1, CIP_FLOAT = 2, CIP_COMPLEX = 4, CIP_LOGICAL = 8, CIP_BYTE = 16, CIP_MULTI = 32,
       CIP_PAIR = 64 };

static int cip_is_one_of(MPI_Datatype type, const MPI_Datatype *types, size_t number)
{
    size_t k;

    for (k = 0; k < number; k++)
        if (types[k] == type)
            return 1;
    return 0;
}

#define CIP_AMONG(type, types) cip_is_one_of(type, types, sizeof types / sizeof *types)

static int cip_class(MPI_Datatype type)
{
    const MPI_Datatype integers[] = {
        MPI_INT, MPI_LONG, MPI_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_SHORT, MPI_LONG_LONG,
        MPI_UNSIGNED_LONG_LONG, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T,
        MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_INTEGER,
        MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,
    };
    const MPI_Datatype floats[] = {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION,
                                   MPI_REAL4, MPI_REAL8};
    const MPI_Datatype complexes[] = {
        MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX,
        MPI_COMPLEX8, MPI_COMPLEX16,
    };
    const MPI_Datatype logicals[] = {MPI_C_BOOL, MPI_LOGICAL};
    const MPI_Datatype multi[] = {MPI_AINT, MPI_COUNT, MPI_OFFSET};
    const MPI_Datatype pairs[] = {MPI_2INT, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT,
                                  MPI_LONG_DOUBLE_INT, MPI_2INTEGER, MPI_2REAL, MPI_2DOUBLE_PRECISION};

    if (CIP_AMONG(type, floats))
        return CIP_FLOAT;
    if (CIP_AMONG(type, integers))
        return CIP_INTEGER;
    if (CIP_AMONG(type, complexes))
        return CIP_COMPLEX;
    if (CIP_AMONG(type, logicals))
        return CIP_LOGICAL;
    if (CIP_AMONG(type, multi))
        return CIP_MULTI;
    if (CIP_AMONG(type, pairs))
        return CIP_PAIR;
    return type == MPI_BYTE ? CIP_BYTE : 0;
}

/* What a predefined operation is defined for; -1 for a user's. */
static int cip_classes_of(MPI_Op op)
{
    if (op == MPI_SUM || op == MPI_PROD)
        return CIP_INTEGER | CIP_FLOAT | CIP_COMPLEX | CIP_MULTI;
    if (op == MPI_MAX || op == MPI_MIN)
        return CIP_INTEGER | CIP_FLOAT | CIP_MULTI;
    if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR)
        return CIP_INTEGER | CIP_LOGICAL;
    if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR)
        return CIP_INTEGER | CIP_BYTE | CIP_MULTI;
    if (op == MPI_MINLOC || op == MPI_MAXLOC)
        return CIP_PAIR;
    return -1;
}

static int cip_repeatable(MPI_Op op)
{
    return op == MPI_MIN || op == MPI_MAX || op == MPI_BAND || op == MPI_BOR || op == MPI_LAND || op == MPI_LOR;
}

static enum cip_end cip_judge_op(MPI_Op op, MPI_Datatype type)
{
    int classes, commutes = 0;

    if (op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP)
        return CIP_WRONG;
    classes = cip_classes_of(op);
    if (classes >= 0)
        return cip_class(type) & classes ? CIP_SERVED : CIP_OTHER_TYPE;
    if (MPI_Op_commutative(op, &commutes) != MPI_SUCCESS)
        return CIP_WRONG;
    return commutes ? CIP_SERVED : CIP_OTHER_OP;
}

static int cip_reduces(const struct cip_call *call)
{
    return call->kind == CIP_ALLREDUCE || call->kind == CIP_REDUCE || call->kind == CIP_REDUCE_SCATTER;
}

static int cip_rooted(const struct cip_call *call)
{
    return call->kind == CIP_BROADCAST || call->kind == CIP_GATHER || call->kind == CIP_REDUCE ||
           call->kind == CIP_SCATTER;
}

/* Bytes of data in an element; -1 where there is no such type. */
static int64_t cip_size(MPI_Datatype type)
{
    MPI_Count size = -1;
    int error;

    if (type == MPI_DATATYPE_NULL)
        return -1;
#if MPI_VERSION >= 4
    error = MPI_Type_size_c(type, &size);
#else
    error = MPI_Type_size_x(type, &size);
#endif
    return error == MPI_SUCCESS && size >= 0 ? (int64_t)size : -1;
}

/* Whether the block that every rank has is described by the receiving side: the other is not looked at. */
static int cip_by_receiver(const struct cip_call *call, int rank)
{
    switch (call->kind) {
    case CIP_BROADCAST:
        return 1;
    case CIP_GATHER:
        return rank == call->root;
    case CIP_SCATTER:
        return rank != call->root;
    default:
        return call->send == MPI_IN_PLACE;
    }
}

/* Bytes of a rank's block (of the vector, where all have all of it), the same on every rank; -1 where the
 * arguments make no sense. */
static int64_t cip_block(const struct cip_call *call, int rank)
{
    int receiver = cip_by_receiver(call, rank);
    int64_t count = receiver ? call->recv_count : call->send_count;
    int64_t size = cip_size(receiver ? call->recv_type : call->send_type), other;
    int in_place = call->send == MPI_IN_PLACE || call->recv == MPI_IN_PLACE;

    if (count < 0 || size < 0 || (size > 0 && count > INT64_MAX / 4096 / size))
        return -1;
    /* Where the other side counts as well, it has to say the same. */
    if (!in_place && (call->kind == CIP_ALLGATHER || call->kind == CIP_ALLTOALL ||
                      ((call->kind == CIP_GATHER || call->kind == CIP_SCATTER) && rank == call->root))) {
        other = cip_size(receiver ? call->send_type : call->recv_type);
        if (other < 0 || (receiver ? call->send_count : call->recv_count) * other != count * size)
            return -1;
    }
    return count * size;
}

/* Chooses the algorithm of a call, or says why there is none. */
static enum cip_end cip_choose(const struct cip_call *call, int ranks, int64_t vector, struct cip_entry **chosen)
{
    struct cip_entry *entry;
    enum cip_end end = CIP_NO_ALGORITHM;

    for (entry = cip_all.entries; entry != NULL; entry = entry->next) {
        enum cip_end here = CIP_SERVED;

        if (entry->kind != call->kind)
            continue;
        if (entry->ranks != ranks)
            here = CIP_OTHER_SIZE;
        else if (cip_rooted(call) &&
                 (entry->serves == NULL ? entry->root != call->root : !entry->serves(call->root)))
            here = CIP_OTHER_ROOT;
        else if (entry->twice && cip_reduces(call) && !cip_repeatable(call->op))
            here = CIP_OTHER_OP;
        else if (vector < entry->low || vector > entry->high)
            here = CIP_OTHER_BYTES;
        if (here == CIP_SERVED) {
            *chosen = entry;
            return CIP_SERVED;
        }
        if (end == CIP_NO_ALGORITHM || here > end)
            end = here;
    }
    return end;
}

/* What a call's communicator says of it; then how many ranks it has. */
static enum cip_end cip_judge_comm(MPI_Comm comm, int *rank, int *ranks)
{
    int inter = 0, initialized = 0;

    if (cip_depth > 0)
        return CIP_WITHIN;
    if (comm == MPI_COMM_NULL || MPI_Initialized(&initialized) != MPI_SUCCESS)
        return CIP_WRONG;
    if (!initialized)
        return CIP_NO_WORLD;
    if (MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
        return CIP_WRONG;
    if (inter)
        return CIP_INTERCOMM;
    if (MPI_Comm_size(comm, ranks) != MPI_SUCCESS || MPI_Comm_rank(comm, rank) != MPI_SUCCESS)
        return CIP_WRONG;
    return CIP_SERVED;
}

static enum cip_end cip_judge(const struct cip_call *call, struct cip_entry **entry, int *rank, int64_t *block)
{
    int ranks = 0;
    enum cip_end end = cip_judge_comm(call->comm, rank, &ranks);

    if (end != CIP_SERVED)
        return end;
    end = cip_choose(call, ranks, -1, entry);
    if (end == CIP_OTHER_SIZE)
        cip_all.other_size = ranks;
    if (end != CIP_OTHER_BYTES)
        return end;
    if (call->unequal)
        return CIP_UNEQUAL;
    if ((*block = cip_block(call, *rank)) < 0)
        return CIP_WRONG;
    if (*block == 0)
        return CIP_NOTHING_TO_DO;
    if (cip_reduces(call)) {
        end = cip_judge_op(call->op, call->send == MPI_IN_PLACE ? call->recv_type : call->send_type);
        if (end != CIP_SERVED)
            return end;
    }
    if (call->kind == CIP_REDUCE && *rank != call->root && call->send == MPI_IN_PLACE)
        return CIP_WRONG;
    end = cip_choose(call, ranks,
                     call->kind == CIP_ALLREDUCE || call->kind == CIP_REDUCE || call->kind == CIP_BROADCAST
                         ? *block
                         : *block * ranks,
                     entry);
    if (end != CIP_SERVED)
        return end;
    /* Reductions go by elements, everything else by bytes: ranks may describe the same bytes by other types. */
    if ((cip_reduces(call) ? call->send_count : *block) > (*entry)->most)
        return CIP_TOO_LARGE;
    return CIP_SERVED;
}
