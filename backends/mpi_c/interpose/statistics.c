/* ---- What was done -------------------------------------------------------------------------------------
 *
 * COLLC_STATS=1 prints it on standard error when MPI ends, COLLC_STATS=FILE writes it there: the sum over
 * all ranks. COLLC_LAUNCH_REPORT=FILE is for `collc launch`: every rank adds its own numbers to the file.
 */

enum { CIP_NUMBERS = 2 * CIP_FUNCTIONS * CIP_ENDS, CIP_LINE = 160 };

static void cip_print(FILE *out, const long *numbers, int ranks)
{
    const long(*ends)[CIP_FUNCTIONS][CIP_ENDS] = (const long(*)[CIP_FUNCTIONS][CIP_ENDS])numbers;
    long served = 0, left = 0;
    int large, function, end;

    for (large = 0; large < 2; large++)
        for (function = 0; function < CIP_FUNCTIONS; function++)
            for (end = 0; end < CIP_ENDS; end++)
                *(end == CIP_SERVED ? &served : &left) += ends[large][function][end];
    fprintf(out, "collc: %ld calls served, %ld left to the MPI (sums over %d ranks)\n", served, left, ranks);
    for (function = 0; function < CIP_FUNCTIONS; function++)
        for (large = 0; large < 2; large++) {
            const long *row = ends[large][function];
            const char *between = "; left: ";
            long any = 0;

            for (end = 0; end < CIP_ENDS; end++)
                any += row[end];
            if (any == 0)
                continue;
            fprintf(out, "collc:   %s%s: %ld served", cip_function_names[function], large ? "_c" : "", row[CIP_SERVED]);
            for (end = CIP_SERVED + 1; end < CIP_ENDS; end++)
                if (row[end] > 0) {
                    fprintf(out, "%s%ld %s", between, row[end], cip_end_names[end]);
                    between = ", ";
                }
            fprintf(out, "\n");
        }
    fflush(out);
}

/* Adds this rank's numbers to the launcher's file, all at once. */
static void cip_report(const char *path)
{
    static char text[(CIP_NUMBERS + 2) * CIP_LINE];
    const char *state = cip_all.state == CIP_ON ? "on" : "off";
    int length, large, function, end, file;

    length = snprintf(text, CIP_LINE, "rank %d of %d, %s, last size %d\n", cip_all.rank, cip_all.size, state,
                      cip_all.other_size);
    for (function = 0; function < CIP_FUNCTIONS; function++)
        for (large = 0; large < 2; large++)
            for (end = 0; end < CIP_ENDS; end++)
                if (cip_all.ends[large][function][end] > 0)
                    length += snprintf(text + length, CIP_LINE, "%s%s\t%s\t%ld\n", cip_function_names[function],
                                       large ? "_c" : "", cip_end_names[end], cip_all.ends[large][function][end]);
    file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0)
        return;
    if (write(file, text, (size_t)length) < 0)
        length = 0; /* nobody to tell */
    close(file);
}

/* Once a process: when MPI ends, or the process where it uses MPI otherwise. */
static void cip_tell(void)
{
    const char *path = getenv("COLLC_LAUNCH_REPORT");

    if (cip_all.reported || path == NULL || path[0] == '\0')
        return;
    cip_all.reported = 1;
    cip_report(path);
    cip_end_counts();
}

/* Whether an MPI is loaded, also in a scope of its own. */
static int cip_note_mpi(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    return info->dlpi_name != NULL && strstr(info->dlpi_name, "libmpi") != NULL;
}

/* A process that none of our functions was called in: what it has of MPI. It is ending: dlclose() would begin
 * that anew. */
static void cip_tell_why(void)
{
    const char *path = getenv("COLLC_LAUNCH_REPORT");
    int (*initialized)(int *) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "PMPI_Initialized");
    char text[CIP_LINE];
    int begun = 0, file;

    if (path == NULL || path[0] == '\0' || (file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC)) < 0)
        return;
    memcpy(&initialized, &found, sizeof initialized);
    if (initialized != NULL && initialized(&begun) != MPI_SUCCESS)
        begun = 0;
    snprintf(text, sizeof text, "process\t%.80s\t%s\n", program_invocation_short_name,
             initialized != NULL ? (begun ? "past" : "no MPI_Init")
                                 : dl_iterate_phdr(cip_note_mpi, NULL) ? "no call" : "no MPI");
    if (write(file, text, strlen(text)) < 0)
        begun = 0; /* nobody to tell */
    close(file);
}

/* All ranks, before MPI ends. */
static void cip_conclude(void)
{
    const char *where = getenv("COLLC_STATS");
    long sum[CIP_NUMBERS];
    int initialized = 0;

    if (!cip_is_on() || MPI_Initialized(&initialized) != MPI_SUCCESS || !initialized)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &cip_all.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &cip_all.size);
    if (where == NULL || where[0] == '\0' || strcmp(where, "0") == 0)
        return;
    if (MPI_Reduce(cip_all.ends, sum, CIP_NUMBERS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD) != MPI_SUCCESS)
        return;
    if (cip_all.rank == 0) {
        FILE *out = strcmp(where, "1") == 0 ? stderr : fopen(where, "w");

        if (out == NULL) {
            fprintf(stderr, "collc: cannot write %s: %s\n", where, strerror(errno));
            return;
        }
        cip_print(out, sum, cip_all.size);
        if (out != stderr)
            fclose(out);
    }
}

__attribute__((destructor)) static void cip_process_ends(void)
{
    if (cip_all.state == CIP_UNKNOWN)
        cip_tell_why();
    else if (cip_all.process == (int)getpid() && !(cip_all.mapped && cip_breaks_off()))
        cip_tell();
}
