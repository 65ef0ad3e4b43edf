/* ---- Programs in Fortran ---------------------------------------------------------------------------------
 *
 * Fortran functions of MPICH and its relatives call the C ones by their plain names, except those of mpi_f08 that have no
 * buffers. Those of Open MPI call PMPI_ names. Where PMPI_ names are called, the functions are wrapped here and in the
 * next two files. Open MPI's mpif.h and its modules `mpi` and `mpi_f08` pass the same arguments: addresses, of which only
 * that of the error may be NULL. pmpi_ names stay the MPI's own.
 */

#ifdef OPEN_MPI
/* A function under all its names. Of mpi_f08 it is the one whose buffers are addresses, not descriptors. */
#define CIP_FORTRAN_OF(mpi, MPI, name, NAME, parameters) \
    CIP_EXPORT void mpi##_##name##_ parameters; \
    CIP_EXPORT void mpi##_##name parameters __attribute__((alias(#mpi "_" #name "_"))); \
    CIP_EXPORT void mpi##_##name##__ parameters __attribute__((alias(#mpi "_" #name "_"))); \
    CIP_EXPORT void MPI##_##NAME parameters __attribute__((alias(#mpi "_" #name "_"))); \
    CIP_EXPORT void mpi##_##name##_f08_ parameters __attribute__((alias(#mpi "_" #name "_"))); \
    void mpi##_##name##_ parameters

#define CIP_FORTRAN_BEHIND(mpi, MPI, name, NAME) \
    cip_fortran_behind("p" #mpi "_" #name "_", "p" #mpi "_" #name, "p" #mpi "_" #name "__", "P" #MPI "_" #NAME)

static cip_function cip_fortran_behind(const char *a, const char *b, const char *c, const char *d)
{
    const char *const names[] = {a, b, c, d};
    size_t k;

    for (k = 0; k < 3; k++)
        if (cip_find(names[k]) != NULL)
            return cip_find(names[k]);
    return cip_behind(names[k], 0);
}
#else
#define CIP_FORTRAN_OF(mpi, MPI, name, NAME, parameters) \
    CIP_EXPORT void mpi##_##name##_f08_ parameters; \
    void mpi##_##name##_f08_ parameters
#define CIP_FORTRAN_BEHIND(mpi, MPI, name, NAME) cip_fortran_behind(#mpi "_" #name "_f08_")

/* There is no second name: what would have been called without this library. */
static cip_function cip_fortran_behind(const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    cip_function function;

    if (address == NULL) {
        fprintf(stderr, "collc: the MPI of this program has no %s\n", name);
        abort();
    }
    memcpy(&function, &address, sizeof function);
    return function;
}
#endif

#define CIP_FORTRAN(name, NAME, parameters) CIP_FORTRAN_OF(mpi, MPI, name, NAME, parameters)

/* The MPI's own function gets the arguments as they came, and a place for the error, which not all do without. */
#define CIP_FORTRAN_NEXT_OF(mpi, MPI, name, NAME, types, arguments) \
    do { \
        static void(*next) types; \
        MPI_Fint unwanted = 0; \
        if (error == NULL) \
            error = &unwanted; \
        if (next == NULL) \
            next = (void(*) types)CIP_FORTRAN_BEHIND(mpi, MPI, name, NAME); \
        next arguments; \
    } while (0)
#define CIP_FORTRAN_NEXT(name, NAME, types, arguments) CIP_FORTRAN_NEXT_OF(mpi, MPI, name, NAME, types, arguments)

typedef MPI_Fint cip_integer; /* MPI's names before parentheses are those of functions */
typedef char cip_needs_integers_of_fortran_like_ints[sizeof(MPI_Fint) == sizeof(int) ? 1 : -1];

/* Numbers of handles to handles, and back. A number that has none may be an argument that does not matter here. */
#ifdef OPEN_MPI
#define CIP_FORTRAN_HANDLE(word, type, NULL_HANDLE) \
    static type cip_fortran_##word(MPI_Fint number) \
    { \
        static type (*convert)(MPI_Fint); \
        type found; \
        if (convert == NULL) \
            convert = (type(*)(MPI_Fint))cip_behind("PMPI_" #word "_f2c", 0); \
        found = convert(number); \
        return found == NULL ? NULL_HANDLE : found; \
    }
#define CIP_FORTRAN_NUMBER(word, type) \
    static cip_integer cip_fortran_##word##_number(type handle) \
    { \
        static cip_integer (*convert)(type); \
        if (convert == NULL) \
            convert = (cip_integer(*)(type))cip_behind("PMPI_" #word "_c2f", 0); \
        return convert(handle); \
    }
#else
#define CIP_FORTRAN_HANDLE(word, type, NULL_HANDLE) \
    static type cip_fortran_##word(MPI_Fint number) \
    { \
        return number; \
    }
#define CIP_FORTRAN_NUMBER(word, type) \
    static cip_integer cip_fortran_##word##_number(type handle) \
    { \
        return handle; \
    }
#endif

CIP_FORTRAN_HANDLE(Comm, MPI_Comm, MPI_COMM_NULL)
CIP_FORTRAN_HANDLE(Type, MPI_Datatype, MPI_DATATYPE_NULL)
CIP_FORTRAN_HANDLE(Op, MPI_Op, MPI_OP_NULL)
CIP_FORTRAN_HANDLE(Request, MPI_Request, MPI_REQUEST_NULL)
CIP_FORTRAN_NUMBER(Type, MPI_Datatype)
CIP_FORTRAN_NUMBER(Op, MPI_Op)
CIP_FORTRAN_NUMBER(Request, MPI_Request)

/* The first n parameters, their types, and their names. */
#define CIP_FORTRAN_P2 MPI_Fint *a, MPI_Fint *b
#define CIP_FORTRAN_P3 CIP_FORTRAN_P2, MPI_Fint *c
#define CIP_FORTRAN_P4 CIP_FORTRAN_P3, MPI_Fint *d
#define CIP_FORTRAN_P5 CIP_FORTRAN_P4, MPI_Fint *e
#define CIP_FORTRAN_P6 CIP_FORTRAN_P5, MPI_Fint *f
#define CIP_FORTRAN_P7 CIP_FORTRAN_P6, MPI_Fint *g
#define CIP_FORTRAN_P8 CIP_FORTRAN_P7, MPI_Fint *h
#define CIP_FORTRAN_P9 CIP_FORTRAN_P8, MPI_Fint *i
#define CIP_FORTRAN_P10 CIP_FORTRAN_P9, MPI_Fint *j
#define CIP_FORTRAN_P11 CIP_FORTRAN_P10, MPI_Fint *k
#define CIP_FORTRAN_W2 MPI_Fint *, MPI_Fint *
#define CIP_FORTRAN_W3 CIP_FORTRAN_W2, MPI_Fint *
#define CIP_FORTRAN_W4 CIP_FORTRAN_W3, MPI_Fint *
#define CIP_FORTRAN_W5 CIP_FORTRAN_W4, MPI_Fint *
#define CIP_FORTRAN_W6 CIP_FORTRAN_W5, MPI_Fint *
#define CIP_FORTRAN_W7 CIP_FORTRAN_W6, MPI_Fint *
#define CIP_FORTRAN_W8 CIP_FORTRAN_W7, MPI_Fint *
#define CIP_FORTRAN_W9 CIP_FORTRAN_W8, MPI_Fint *
#define CIP_FORTRAN_W10 CIP_FORTRAN_W9, MPI_Fint *
#define CIP_FORTRAN_W11 CIP_FORTRAN_W10, MPI_Fint *
#define CIP_FORTRAN_A2 a, b
#define CIP_FORTRAN_A3 CIP_FORTRAN_A2, c
#define CIP_FORTRAN_A4 CIP_FORTRAN_A3, d
#define CIP_FORTRAN_A5 CIP_FORTRAN_A4, e
#define CIP_FORTRAN_A6 CIP_FORTRAN_A5, f
#define CIP_FORTRAN_A7 CIP_FORTRAN_A6, g
#define CIP_FORTRAN_A8 CIP_FORTRAN_A7, h
#define CIP_FORTRAN_A9 CIP_FORTRAN_A8, i
#define CIP_FORTRAN_A10 CIP_FORTRAN_A9, j
#define CIP_FORTRAN_A11 CIP_FORTRAN_A10, k

/* What the C wrappers do around the beginning, the freeing of communicators, and the end. */
static void cip_fortran_init_for_threads(MPI_Fint *provided, MPI_Fint *error)
{
    MPI_Fint required = MPI_THREAD_MULTIPLE;

    CIP_FORTRAN_NEXT(init_thread, INIT_THREAD, (MPI_Fint *, MPI_Fint *, MPI_Fint *), (&required, provided, error));
    if (cip_is_on())
        cip_welcome(MPI_COMM_WORLD);
}

CIP_FORTRAN(init, INIT, (MPI_Fint *error))
{
    MPI_Fint provided;

    if (cip_wants("COLLC_NONBLOCKING")) {
        cip_fortran_init_for_threads(&provided, error);
        return;
    }
    CIP_FORTRAN_NEXT(init, INIT, (MPI_Fint *), (error));
    cip_is_on();
}

CIP_FORTRAN(init_thread, INIT_THREAD, (MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error))
{
    if (cip_wants("COLLC_NONBLOCKING")) {
        cip_fortran_init_for_threads(provided, error);
        return;
    }
    CIP_FORTRAN_NEXT(init_thread, INIT_THREAD, (MPI_Fint *, MPI_Fint *, MPI_Fint *), (required, provided, error));
    cip_is_on();
}

/* A new communicator has its double at once. */
#define CIP_FORTRAN_MAKES(name, NAME, n, made) \
    CIP_FORTRAN(name, NAME, (CIP_FORTRAN_P##n, MPI_Fint *error)) \
    { \
        MPI_Fint code = MPI_SUCCESS, *told = error; \
        error = &code; \
        CIP_FORTRAN_NEXT(name, NAME, (CIP_FORTRAN_W##n, MPI_Fint *), (CIP_FORTRAN_A##n, error)); \
        if (told != NULL) \
            *told = code; \
        if (code == MPI_SUCCESS && cip_all.nonblocking) \
            cip_welcome(cip_fortran_Comm(*(made))); \
    }

CIP_FORTRAN_MAKES(comm_dup, COMM_DUP, 2, b)
CIP_FORTRAN_MAKES(comm_dup_with_info, COMM_DUP_WITH_INFO, 3, c)
CIP_FORTRAN_MAKES(comm_create, COMM_CREATE, 3, c)
CIP_FORTRAN_MAKES(comm_create_group, COMM_CREATE_GROUP, 4, d)
CIP_FORTRAN_MAKES(comm_split, COMM_SPLIT, 4, d)
CIP_FORTRAN_MAKES(comm_split_type, COMM_SPLIT_TYPE, 5, e)
CIP_FORTRAN_MAKES(cart_create, CART_CREATE, 6, f)
CIP_FORTRAN_MAKES(cart_sub, CART_SUB, 3, c)
CIP_FORTRAN_MAKES(graph_create, GRAPH_CREATE, 6, f)
CIP_FORTRAN_MAKES(dist_graph_create, DIST_GRAPH_CREATE, 9, i)
CIP_FORTRAN_MAKES(dist_graph_create_adjacent, DIST_GRAPH_CREATE_ADJACENT, 10, j)
CIP_FORTRAN_MAKES(intercomm_merge, INTERCOMM_MERGE, 3, c)

#define CIP_FORTRAN_FREES(name, NAME) \
    CIP_FORTRAN(name, NAME, (MPI_Fint *comm, MPI_Fint *error)) \
    { \
        MPI_Comm freed = cip_fortran_Comm(*comm); \
        cip_await_stages(&freed); \
        cip_depth++; \
        CIP_FORTRAN_NEXT(name, NAME, (MPI_Fint *, MPI_Fint *), (comm, error)); \
        cip_depth--; \
    }

CIP_FORTRAN_FREES(comm_free, COMM_FREE)
CIP_FORTRAN_FREES(comm_disconnect, COMM_DISCONNECT)

CIP_FORTRAN(finalize, FINALIZE, (MPI_Fint *error))
{
    cip_dismiss_worker();
    cip_conclude();
    cip_depth++;
    CIP_FORTRAN_NEXT(finalize, FINALIZE, (MPI_Fint *), (error));
    cip_depth--;
    cip_tell();
}

#if CIP_PERSISTENT
/* The persistent call behind the number of a request, or NULL. */
static struct cip_operation *cip_fortran_persistent(MPI_Fint request)
{
    return cip_worker.runs ? cip_persistent(cip_fortran_Request(request)) : NULL;
}

static int cip_fortran_start(MPI_Fint *request)
{
    MPI_Request handle = cip_fortran_Request(*request);
    int code = cip_start_one(&handle);

    *request = cip_fortran_Request_number(handle);
    return code;
}

CIP_FORTRAN(start, START, (MPI_Fint *request, MPI_Fint *error))
{
    if (cip_fortran_persistent(*request) != NULL) {
        int code = cip_fortran_start(request);

        if (error != NULL)
            *error = code;
        return;
    }
    CIP_FORTRAN_NEXT(start, START, (MPI_Fint *, MPI_Fint *), (request, error));
}

CIP_FORTRAN(startall, STARTALL, (MPI_Fint *number, MPI_Fint *requests, MPI_Fint *error))
{
    int code = MPI_SUCCESS, ours = 0, k;

    for (k = 0; k < *number && !ours; k++)
        ours = cip_fortran_persistent(requests[k]) != NULL;
    if (ours) {
        for (k = 0; k < *number && code == MPI_SUCCESS; k++)
            code = cip_fortran_start(&requests[k]);
        if (error != NULL)
            *error = code;
        return;
    }
    CIP_FORTRAN_NEXT(startall, STARTALL, (MPI_Fint *, MPI_Fint *, MPI_Fint *), (number, requests, error));
}

CIP_FORTRAN(request_free, REQUEST_FREE, (MPI_Fint *request, MPI_Fint *error))
{
    struct cip_operation *it = cip_fortran_persistent(*request);
    MPI_Fint code = MPI_SUCCESS, *told = error;

    error = &code;
    CIP_FORTRAN_NEXT(request_free, REQUEST_FREE, (MPI_Fint *, MPI_Fint *), (request, error));
    if (told != NULL)
        *told = code;
    if (it != NULL && code == MPI_SUCCESS)
        cip_forget(it);
}
#endif

CIP_FORTRAN(cancel, CANCEL, (MPI_Fint *request, MPI_Fint *error))
{
    MPI_Request handle = cip_worker.runs ? cip_fortran_Request(*request) : MPI_REQUEST_NULL;

    if (cip_is_under_way(&handle)) {
        if (error != NULL)
            *error = MPI_SUCCESS;
        return;
    }
    CIP_FORTRAN_NEXT(cancel, CANCEL, (MPI_Fint *, MPI_Fint *), (request, error));
}

/* What calls under way need is freed after them. */
#define CIP_FORTRAN_FREES_LATER(name, NAME, type, op, none) \
    CIP_FORTRAN(name, NAME, (MPI_Fint *handle, MPI_Fint *error)) \
    { \
        if (cip_worker.runs && cip_frees_later(type, op)) { \
            *handle = none; \
            if (error != NULL) \
                *error = MPI_SUCCESS; \
            return; \
        } \
        CIP_FORTRAN_NEXT(name, NAME, (MPI_Fint *, MPI_Fint *), (handle, error)); \
    }

CIP_FORTRAN_FREES_LATER(type_free, TYPE_FREE, cip_fortran_Type(*handle), MPI_OP_NULL, cip_fortran_Type_number(MPI_DATATYPE_NULL))
CIP_FORTRAN_FREES_LATER(op_free, OP_FREE, MPI_DATATYPE_NULL, cip_fortran_Op(*handle), cip_fortran_Op_number(MPI_OP_NULL))
