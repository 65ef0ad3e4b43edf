/* ---- Counts that survive their process -------------------------------------------------------------------
 *
 * Under `collc launch` the counts of a process stand in a file of its own beside the launcher's report, mapped
 * into its memory: what a process that is killed has counted stays. Who ends in order adds its numbers to the
 * report, and removes the file.
 */

struct cip_file {
    char magic[16];
    int32_t rank, size, functions, ends;
    int64_t counts[2][CIP_FUNCTIONS][CIP_ENDS];
    char names[(CIP_FUNCTIONS + CIP_ENDS) * 48]; /* a line each */
};

typedef char cip_needs_longs_of_64_bits[sizeof(long) == sizeof(int64_t) ? 1 : -1];

static void cip_fill(struct cip_file *file)
{
    size_t length = 0;
    int k;

    file->rank = cip_all.rank;
    file->size = cip_all.size;
    file->functions = CIP_FUNCTIONS;
    file->ends = CIP_ENDS;
    for (k = 0; k < CIP_FUNCTIONS + CIP_ENDS; k++)
        length += (size_t)snprintf(file->names + length, sizeof file->names - length, "%s\n",
                                   k < CIP_FUNCTIONS ? cip_function_names[k] : cip_end_names[k - CIP_FUNCTIONS]);
    memcpy(file->magic, "collc counts 1\n", 16);
}

/* Where MPI has begun, who this is. */
static void cip_note_rank(void)
{
    int begun = 0, ended = 0;

    if (MPI_Initialized(&begun) != MPI_SUCCESS || MPI_Finalized(&ended) != MPI_SUCCESS || !begun || ended)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &cip_all.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &cip_all.size);
}

/* Whether the process leaves MPI without MPI_Finalize. */
static int cip_breaks_off(void)
{
    int begun = 0, ended = 0;

    return cip_all.state == CIP_ON && MPI_Initialized(&begun) == MPI_SUCCESS && begun &&
           MPI_Finalized(&ended) == MPI_SUCCESS && !ended;
}

static void cip_begin_counts(void)
{
    const char *path = getenv("COLLC_LAUNCH_REPORT");
    struct cip_file *file = MAP_FAILED;
    char host[64] = "";
    int open_file;

    cip_all.ends = cip_all.own;
    if (cip_all.state_found != CIP_ON)
        return;
    cip_note_rank();
    if (path == NULL || path[0] == '\0' || gethostname(host, sizeof host - 1) != 0 ||
        snprintf(cip_all.path, sizeof cip_all.path, "%s.%s.%d", path, host, cip_all.process) >=
            (int)sizeof cip_all.path)
        return;
    open_file = open(cip_all.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (open_file < 0)
        return;
    /* All of its blocks now: a full disk must not end the program later. */
    if (posix_fallocate(open_file, 0, sizeof *file) == 0)
        file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, open_file, 0);
    close(open_file);
    if (file == MAP_FAILED) {
        unlink(cip_all.path);
        return;
    }
    cip_fill(file);
    cip_all.ends = (long(*)[CIP_FUNCTIONS][CIP_ENDS])file->counts;
    cip_all.mapped = 1;
}

/* The numbers have been told. */
static void cip_end_counts(void)
{
    if (cip_all.mapped)
        unlink(cip_all.path);
    cip_all.mapped = 0; /* calls of other threads may still count */
}
