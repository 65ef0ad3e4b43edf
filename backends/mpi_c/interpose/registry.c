/* ---- What this library serves, and what it did ------------------------------------------------------ */

enum { CIP_ALLGATHER, CIP_ALLREDUCE, CIP_ALLTOALL, CIP_BROADCAST, CIP_GATHER, CIP_REDUCE,
       CIP_REDUCE_SCATTER, CIP_SCATTER, CIP_NEIGHBOURS };

/* The functions that programs call, twice: with int counts, and with large ones. */
enum { CIP_MPI_ALLGATHER, CIP_MPI_ALLREDUCE, CIP_MPI_ALLTOALL, CIP_MPI_BCAST, CIP_MPI_GATHER, CIP_MPI_REDUCE,
       CIP_MPI_REDUCE_SCATTER, CIP_MPI_REDUCE_SCATTER_BLOCK, CIP_MPI_SCATTER,
       CIP_MPI_IALLGATHER, CIP_MPI_IALLREDUCE, CIP_MPI_IALLTOALL, CIP_MPI_IBCAST, CIP_MPI_IGATHER, CIP_MPI_IREDUCE,
       CIP_MPI_IREDUCE_SCATTER_BLOCK, CIP_MPI_ISCATTER,
       CIP_MPI_ALLGATHER_INIT, CIP_MPI_ALLREDUCE_INIT, CIP_MPI_ALLTOALL_INIT, CIP_MPI_BCAST_INIT, CIP_MPI_GATHER_INIT,
       CIP_MPI_REDUCE_INIT, CIP_MPI_REDUCE_SCATTER_BLOCK_INIT, CIP_MPI_SCATTER_INIT,
       CIP_MPI_ALLGATHERV, CIP_MPI_ALLTOALLV, CIP_MPI_ALLTOALLW, CIP_MPI_GATHERV, CIP_MPI_SCATTERV,
       CIP_MPI_IALLGATHERV, CIP_MPI_IALLTOALLV, CIP_MPI_IALLTOALLW, CIP_MPI_IGATHERV, CIP_MPI_IREDUCE_SCATTER,
       CIP_MPI_ISCATTERV,
       CIP_MPI_ALLGATHERV_INIT, CIP_MPI_ALLTOALLV_INIT, CIP_MPI_ALLTOALLW_INIT, CIP_MPI_GATHERV_INIT,
       CIP_MPI_REDUCE_SCATTER_INIT, CIP_MPI_SCATTERV_INIT,
       CIP_MPI_NEIGHBOR_ALLGATHER, CIP_MPI_NEIGHBOR_ALLGATHERV, CIP_MPI_NEIGHBOR_ALLTOALL,
       CIP_MPI_NEIGHBOR_ALLTOALLV, CIP_MPI_NEIGHBOR_ALLTOALLW, CIP_MPI_INEIGHBOR_ALLGATHER,
       CIP_MPI_INEIGHBOR_ALLGATHERV, CIP_MPI_INEIGHBOR_ALLTOALL, CIP_MPI_INEIGHBOR_ALLTOALLV,
       CIP_MPI_INEIGHBOR_ALLTOALLW, CIP_MPI_NEIGHBOR_ALLGATHER_INIT, CIP_MPI_NEIGHBOR_ALLGATHERV_INIT,
       CIP_MPI_NEIGHBOR_ALLTOALL_INIT, CIP_MPI_NEIGHBOR_ALLTOALLV_INIT, CIP_MPI_NEIGHBOR_ALLTOALLW_INIT,
       CIP_FUNCTIONS };

static const char *const cip_function_names[CIP_FUNCTIONS] = {
    "MPI_Allgather", "MPI_Allreduce", "MPI_Alltoall", "MPI_Bcast", "MPI_Gather", "MPI_Reduce",
    "MPI_Reduce_scatter", "MPI_Reduce_scatter_block", "MPI_Scatter", "MPI_Iallgather", "MPI_Iallreduce",
    "MPI_Ialltoall", "MPI_Ibcast", "MPI_Igather", "MPI_Ireduce", "MPI_Ireduce_scatter_block", "MPI_Iscatter",
    CIP_INIT "Allgather_init", CIP_INIT "Allreduce_init", CIP_INIT "Alltoall_init", CIP_INIT "Bcast_init",
    CIP_INIT "Gather_init", CIP_INIT "Reduce_init", CIP_INIT "Reduce_scatter_block_init", CIP_INIT "Scatter_init",
    "MPI_Allgatherv", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Gatherv", "MPI_Scatterv", "MPI_Iallgatherv",
    "MPI_Ialltoallv", "MPI_Ialltoallw", "MPI_Igatherv", "MPI_Ireduce_scatter", "MPI_Iscatterv",
    CIP_INIT "Allgatherv_init", CIP_INIT "Alltoallv_init", CIP_INIT "Alltoallw_init", CIP_INIT "Gatherv_init",
    CIP_INIT "Reduce_scatter_init", CIP_INIT "Scatterv_init", "MPI_Neighbor_allgather", "MPI_Neighbor_allgatherv",
    "MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallv", "MPI_Neighbor_alltoallw", "MPI_Ineighbor_allgather",
    "MPI_Ineighbor_allgatherv", "MPI_Ineighbor_alltoall", "MPI_Ineighbor_alltoallv", "MPI_Ineighbor_alltoallw",
    CIP_INIT "Neighbor_allgather_init", CIP_INIT "Neighbor_allgatherv_init", CIP_INIT "Neighbor_alltoall_init",
    CIP_INIT "Neighbor_alltoallv_init", CIP_INIT "Neighbor_alltoallw_init",
};

/* What became of a call. But for arguments that make no sense anyhow, all ranks of a call come to the
 * same end, for they decide by what MPI wants to be the same everywhere. */
enum cip_end { CIP_SERVED, CIP_NO_ALGORITHM, CIP_OTHER_SIZE, CIP_INTERCOMM, CIP_OTHER_ROOT, CIP_OTHER_OP,
               CIP_OTHER_TYPE, CIP_NOTHING_TO_DO, CIP_OTHER_BYTES, CIP_TOO_LARGE, CIP_UNEQUAL, CIP_WITHIN,
               CIP_NO_WORLD, CIP_WRONG, CIP_NO_MEMORY, CIP_NO_DOUBLE, CIP_NO_THREADS, CIP_SLOWER,
               CIP_NEEDS_NONBLOCKING, CIP_NEEDS_UNEVEN, CIP_NEEDS_BOTH, CIP_OTHER_NEIGHBOURS, CIP_ENDS };

static const char *const cip_end_names[CIP_ENDS] = {
    "served", "no algorithm for the collective", "communicator of another size", "intercommunicator",
    "another root", "operation", "type and operation", "no data", "bytes outside the range",
    "too large a count", "unequal counts", "within another call", "no MPI_Init", "arguments",
    "no memory", "no private communicator yet", "no MPI_THREAD_MULTIPLE", "timed slower",
    "needs --nonblocking", "needs --uneven", "needs --nonblocking --uneven", "other neighbours",
};

/* Blocks that go from rank to rank, with lists in the algorithm's order. */
struct cip_exchange {
    const void *send;
    void *recv;
    const MPI_Count *send_counts, *recv_counts;
    const MPI_Aint *send_places, *recv_places;
    MPI_Datatype send_type, recv_type;
};

/* How such a call is made: at once, as a request that is begun, or as one that can be started again and again. */
enum { CIP_AT_ONCE, CIP_ONCE, CIP_AGAIN };

/* One algorithm: the calls that it is for, and the function that carries them out. */
struct cip_entry {
    int kind, ranks, root, twice;
    int64_t low, high; /* bytes of the whole vector */
    const char *name;
    int (*call)(const void *, void *, int64_t, MPI_Datatype, MPI_Op, int root, MPI_Comm);
    /* Nonblocking calls, and persistent ones that start() starts. */
    int (*begin)(const void *, void *, int64_t, MPI_Datatype, MPI_Op, int root, MPI_Comm, int persistent, void **);
    int (*start)(void *);
    int (*test)(void **, int *done, int *moved); /* carries a call on, and ends it */
    void (*forget)(void *);
    int (*attach)(MPI_Comm); /* what a first call would wait for; collective */
    int (*serves)(int root);     /* whether the algorithm is moved to a root; NULL: it serves one root, or needs none */
    int (*peers)(int rank, int receives, int *peers); /* of neighbours: the other ends of a rank's blocks, unless NULL; their number */
    int (*exchange)(const struct cip_exchange *, MPI_Comm, int form, void **request);
    int64_t most;                /* elements of a count */
    const char *(*bind)(void);   /* finds the MPI's functions; returns the name of one that is missing */
    struct cip_entry *next;
};

/* Which neighbours of a rank each block of an algorithm is for: block k for those from order[first[k]] to before
 * order[first[k + 1]]. Those behind the last block are the rank itself, for which an algorithm needs no block. */
struct cip_side {
    int blocks, listed;
    int *first, *order;
};

/* An algorithm for the neighbours of a communicator. */
struct cip_halo {
    struct cip_entry *entry; /* NULL: there is none */
    struct cip_side sides[2]; /* what is sent, and received */
    int joins;                /* whether a block is not for one neighbour, or the rank is its own */
};

/* A communicator that was served, and its private double. */
struct cip_double {
    MPI_Comm owner, comm;
    MPI_Comm staged; /* for calls that the thread begins; see stages.c */
    struct cip_halo halo;
    char *memory; /* to pack data in: as much on all ranks */
    int64_t capacity;
    struct cip_tuned *tuned; /* which of both is faster; see tune.c */
    int untuned;             /* whether that was asked for before */
    struct cip_double *next;
};

enum { CIP_UNKNOWN, CIP_ON, CIP_OFF };

struct cip_state {
    struct cip_entry *entries;
    volatile int lock, state;
    int state_found;
    int nonblocking; /* whether nonblocking calls are served */
    int uneven;      /* whether ranks tell each other the sizes of their data */
    const char *tune; /* the file of what was timed; NULL: nothing is */
    int key, key_of_end;
    struct cip_double *doubles;
    volatile int freed; /* how many communicators with a double were: handles may be given again */
    long own[2][CIP_FUNCTIONS][CIP_ENDS];
    long (*ends)[CIP_FUNCTIONS][CIP_ENDS]; /* these, or those of a file: see counts.c */
    char path[CIP_PATH];
    int mapped;
    int other_size; /* of a communicator that was not served */
    int rank, size; /* in MPI_COMM_WORLD */
    int process, reported;
};

CIP_SHARED struct cip_state cip_all;
CIP_SHARED __thread int cip_depth; /* above 0: this thread is in a call of ours, or frees a communicator */

static void cip_lock(void)
{
    while (__sync_lock_test_and_set(&cip_all.lock, 1))
        sched_yield();
}

static void cip_unlock(void)
{
    __sync_lock_release(&cip_all.lock);
}

/* What an algorithm returns where a rank had no memory, all ranks know it, and none has sent anything. */
enum { CIP_NOT_BEGUN = INT_MIN, CIP_NOT_FASTER = INT_MIN + 1 };

/* Called for every algorithm when the library is loaded. */
CIP_SHARED void cip_enlist(struct cip_entry *entry);
CIP_SHARED void cip_enlist(struct cip_entry *entry)
{
    struct cip_entry **link = &cip_all.entries;

    while (*link != NULL)
        link = &(*link)->next;
    *link = entry;
}

/* The other ends of a rank's blocks in a plan: `listed` has the shards in each rank's input and output. */
CIP_SHARED int cip_list_peers(const int32_t *begins, const int32_t *listed, int ranks, int rank, int receives, int *peers);
CIP_SHARED int cip_list_peers(const int32_t *begins, const int32_t *listed, int ranks, int rank, int receives, int *peers)
{
    int first = begins[2 * rank + receives], end = begins[2 * rank + receives + 1], k, r, j;

    for (k = first; k < end && peers != NULL; k++)
        for (r = 0; r < ranks; r++)
            for (j = begins[2 * r + !receives]; j < begins[2 * r + !receives + 1]; j++)
                if (listed[j] == listed[k])
                    peers[k - first] = r;
    return end - first;
}

/* Whether this process is the one to speak for all, as far as its launcher tells. */
static int cip_speaks(void)
{
    static const char *const names[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
    size_t k;

    for (k = 0; k < sizeof names / sizeof *names; k++) {
        const char *value = getenv(names[k]);

        if (value != NULL)
            return strcmp(value, "0") == 0;
    }
    return 1;
}

static int cip_refuse(const char *why, const char *what)
{
    if (cip_speaks())
        fprintf(stderr, "collc: nothing is served: %s%s\n", why, what);
    return CIP_OFF;
}

/* Whether the program runs on the MPI whose header this was compiled with. */
static int cip_examine(void)
{
    int (*version)(char *, int *) = (int (*)(char *, int *))cip_find("PMPI_Get_library_version");
    const char *disabled = getenv("COLLC_DISABLE");
    struct cip_entry *entry;
    char text[8192] = "an MPI";
    int length = 0, open_mpi = cip_address("ompi_mpi_comm_world") != NULL;

    if (disabled != NULL && disabled[0] != '\0' && strcmp(disabled, "0") != 0)
        return CIP_OFF;
    if (version != NULL)
        version(text, &length);
    text[strcspn(text, "\n\t,:")] = '\0';
    if (strstr(text, " Version") != NULL)
        *strstr(text, " Version") = '\0';
#ifdef OPEN_MPI
    if (!open_mpi)
        return cip_refuse("this library is for Open MPI, the program runs on ", text);
#else
    if (open_mpi)
        return cip_refuse("this library is for MPICH and its relatives, the program runs on ", text);
    {
        void *where = cip_address("PMPI_Allreduce");
        Dl_info info;

        if (where != NULL && dladdr(where, &info) && info.dli_fname != NULL &&
            strstr(info.dli_fname, "libmpi_abi") != NULL)
            return cip_refuse("this library is for MPICH's own binary interface, the program uses ",
                              "the standard one (libmpi_abi)");
    }
#endif
    for (entry = cip_all.entries; entry != NULL; entry = entry->next) {
        const char *missing = entry->bind();

        if (missing != NULL)
            return cip_refuse("the program's MPI is older than the one this library was built for: it has no ",
                              missing);
    }
    return CIP_ON;
}

static void cip_begin_counts(void);

/* Whether a variable, which all ranks have, is 1. */
static int cip_wants(const char *variable)
{
    const char *wanted = getenv(variable);

    return wanted != NULL && strcmp(wanted, "1") == 0;
}

static int cip_is_on(void)
{
    if (cip_all.state == CIP_UNKNOWN) {
        cip_lock();
        if (cip_all.state == CIP_UNKNOWN) {
            cip_all.key = cip_all.key_of_end = MPI_KEYVAL_INVALID;
            cip_all.process = (int)getpid();
            cip_all.rank = -1;
            cip_all.state_found = cip_examine();
            cip_all.nonblocking = cip_all.state_found == CIP_ON && cip_wants("COLLC_NONBLOCKING");
            cip_all.uneven = cip_wants("COLLC_UNEVEN");
            cip_all.tune = getenv("COLLC_TUNE");
            if (cip_all.tune != NULL && cip_all.tune[0] == '\0')
                cip_all.tune = NULL;
            cip_begin_counts();
            __sync_synchronize();
            cip_all.state = cip_all.state_found;
        }
        cip_unlock();
    }
    return cip_all.state == CIP_ON;
}
