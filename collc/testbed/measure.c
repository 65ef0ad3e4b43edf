/* Times collectives of every kind in one run, alternately: compiled ones, and the MPI's own.
 *
 *     measure REPEATS BYTES,BYTES,.. NAME,NAME,.. SETTLE      (`builtin` is MPI_Allreduce)
 *
 * Ranks are processes of one machine, so they have one clock. All ranks agree on the time at which a call begins, and
 * sleep until then. The call ends when the last rank is done. So the exit of a barrier and the rest of earlier
 * messages do not count. Each result is checked before the next call.
 *
 * A table `struct entry entries[]` precedes this file. */
#define _GNU_SOURCE

static int64_t settle; /* ns from the agreement to the beginning */

static int64_t now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

/* Processor seconds of this process. */
static double processor(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void sleep_until(int64_t moment)
{
    struct timespec at = {moment / 1000000000, moment % 1000000000};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
}

static int call(const struct entry *entry, const float *in, float *out, int count)
{
    if (entry->function == NULL)
        return MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return entry->function(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* Small integers: their sums are exact in any order. */
static float value(int rank, int k)
{
    return (float)((rank + 1) * (k % 61 + 1));
}

static int wrong(const float *out, int count, int ranks)
{
    int k;

    for (k = 0; k < count; k++)
        if (out[k] != (float)(ranks * (ranks + 1) / 2) * (float)(k % 61 + 1))
            return 1;
    return 0;
}

static void measure(const struct entry *entry, const float *in, float *out, int count, int report)
{
    int64_t start, mine[2], last[2];
    double used, all;
    int rank, ranks, error;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    memset(out, 0, (size_t)count * sizeof *out);
    MPI_Barrier(MPI_COMM_WORLD);
    start = now() + settle;
    MPI_Bcast(&start, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    sleep_until(start);
    used = processor();
    mine[0] = now() - start;
    error = call(entry, in, out, count);
    mine[1] = now() - start;
    used = processor() - used;
    if (error != MPI_SUCCESS || wrong(out, count, ranks)) {
        fprintf(stderr, "%s of %d elements is wrong on rank %d\n", entry->name, count, rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Reduce(mine, last, 2, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && report)
        printf("time %s %ld %.9f late %.9f processor %.9f\n", entry->name, (long)count * (long)sizeof *out,
               (double)last[1] / 1e9, (double)last[0] / 1e9, all);
}

static const struct entry *find(const char *name)
{
    size_t k;

    for (k = 0; k < sizeof entries / sizeof *entries; k++)
        if (strcmp(entries[k].name, name) == 0)
            return &entries[k];
    fprintf(stderr, "no algorithm `%s`\n", name);
    exit(2);
}

enum { MOST = 64 };

/* Splits at commas. */
static int split(char *text, char **parts)
{
    int number = 0;

    for (text = strtok(text, ","); text != NULL && number < MOST; text = strtok(NULL, ","))
        parts[number++] = text;
    return number;
}

int main(int argc, char **argv)
{
    char *sizes[MOST], *names[MOST];
    int repeats, rank, number_of_sizes, number_of_names, s, r, k;

    MPI_Init(&argc, &argv);
    if (argc != 5)
        return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    repeats = atoi(argv[1]);
    settle = atoll(argv[4]);
    number_of_sizes = split(argv[2], sizes);
    number_of_names = split(argv[3], names);
    for (s = 0; s < number_of_sizes; s++) {
        int count = (int)(atol(sizes[s]) / (long)sizeof(float)), i;
        float *in = malloc((size_t)count * sizeof *in + 1), *out = malloc((size_t)count * sizeof *out + 1);

        if (in == NULL || out == NULL)
            MPI_Abort(MPI_COMM_WORLD, 1);
        for (i = 0; i < count; i++)
            in[i] = value(rank, i);
        /* Round -1 opens connections and widens their windows. */
        for (r = -1; r < repeats; r++)
            for (k = 0; k < number_of_names; k++)
                measure(find(names[k]), in, out, count, r >= 0);
        free(in);
        free(out);
    }
    MPI_Finalize();
    if (rank == 0)
        printf("end\n");
    return 0;
}
