/* ---- Small messages inside a machine --------------------------------------------------------------
 *
 * If all ranks of a communicator are processes of one machine, small messages of blocking calls go through memory that
 * they share, as *letters*: the sender copies its data to a box, and the receiver copies them out of it. A connection
 * (from, to, channel) has a few boxes, used in turn. Both ends number its letters. The turn of a box is 2k while its
 * k-th letter may be put in, and 2k + 1 until that is taken out. So a letter waits for its box like a send for its
 * receive, and both ends choose alike: they know the bytes of data of every message.
 *
 * The memory is a file without a name, of rank 0. The others open it by the number of its descriptor (/proc), which
 * works only in the same machine and for the same user. A token shows that it is this file. Nothing remains of it when
 * the last process ends, in whichever way. If one rank cannot map it, all ranks send messages by MPI.
 */

#ifndef COLLC_LETTER_BYTES /* the most that a letter may have; 0: no letters */
#define COLLC_LETTER_BYTES 8192
#endif

enum { BOXES = 2, BOX_HEAD = 64, LEAST_BOX = 256, MOST_RANKS = 1 << 10, POLLS_WITHOUT_MPI = 16 };
/* Of which a process uses what its connections need: memory that nobody wrote to takes none. */
enum { MOST_SHARED = 1 << 28 };

struct box {
    uint32_t turn, bytes;
    char contents[BOX_HEAD - 8]; /* and more */
};

/* The letters of a communicator. */
struct mail {
    char *base;     /* NULL: there are none */
    size_t bytes;   /* that are mapped */
    int ranks, rank;
    int64_t most;   /* bytes of a letter */
    uint32_t *sent; /* letters of each of this rank's connections, by peer and channel; then those received */
    unsigned polls; /* in which MPI was not asked for anything */
};

#if COLLC_LETTER_BYTES > 0 && defined(MFD_CLOEXEC) && defined(MADV_DONTFORK) && defined(__ATOMIC_ACQUIRE)

/* What rank 0 tells of its file: its process and descriptor there, bytes (0: no letters), and the token. */
enum { OFFER_PROCESS, OFFER_FILE, OFFER_BYTES, OFFER_TOKEN, OFFERS };

/* Bytes of the counts of a rank's letters. */
static int64_t counts_bytes(int ranks)
{
    return ((int64_t)2 * ranks * CHANNELS * (int64_t)sizeof(uint32_t) + 63) / 64 * 64;
}

/* Measures the memory; returns its bytes, or 0 where there are too many ranks. */
static int64_t measure_letters(struct mail *it)
{
    int64_t boxes = (int64_t)it->ranks * it->ranks * CHANNELS * BOXES, counts;

    it->most = 0;
    if (it->ranks < 2 || it->ranks > MOST_RANKS || boxes == 0)
        return 0;
    counts = it->ranks * counts_bytes(it->ranks);
    for (it->most = COLLC_LETTER_BYTES; boxes * (it->most + BOX_HEAD) + counts > MOST_SHARED; it->most /= 2)
        if (it->most < 2 * LEAST_BOX)
            return 0;
    it->most = (it->most + 63) / 64 * 64;
    return BOX_HEAD + counts + boxes * (it->most + BOX_HEAD);
}

static int map_letters(struct mail *it, int descriptor, int64_t bytes)
{
    void *base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

    if (base == MAP_FAILED)
        return 0;
    it->base = base;
    it->bytes = (size_t)bytes;
    it->sent = (uint32_t *)(void *)(it->base + BOX_HEAD + it->rank * counts_bytes(it->ranks));
    madvise(base, it->bytes, MADV_DONTFORK); /* a child must not make calls of MPI */
    return 1;
}

static void close_letters(struct mail *it)
{
    if (it->base != NULL)
        munmap(it->base, it->bytes);
    it->base = NULL;
}

/* Makes the file; returns its descriptor, or -1. COLLC_SHARED_MEMORY=0, at rank 0, means no letters. */
static int make_file(struct mail *it, int64_t *offer)
{
    const char *wanted = getenv("COLLC_SHARED_MEMORY");
    int64_t bytes = measure_letters(it);
    double now = MPI_Wtime();
    int descriptor;

    if (bytes == 0 || (wanted != NULL && strcmp(wanted, "0") == 0))
        return -1;
    descriptor = memfd_create("collc", MFD_CLOEXEC);
    if (descriptor < 0)
        return -1;
    if (ftruncate(descriptor, (off_t)bytes) != 0 || !map_letters(it, descriptor, bytes)) {
        close(descriptor);
        return -1;
    }
    offer[OFFER_PROCESS] = (int64_t)getpid();
    offer[OFFER_FILE] = descriptor;
    offer[OFFER_BYTES] = bytes;
    memcpy(&offer[OFFER_TOKEN], &now, sizeof now);
    offer[OFFER_TOKEN] ^= (int64_t)(intptr_t)it->base;
    memcpy(it->base, offer, OFFERS * sizeof *offer);
    return descriptor;
}

/* Whether a process has this one's network: with another it plays another machine, to which messages are wanted. */
static int has_our_network(int64_t process)
{
    char entry_name[64];
    struct stat ours, theirs;

    snprintf(entry_name, sizeof entry_name, "/proc/%lld/ns/net", (long long)process);
    return stat("/proc/self/ns/net", &ours) == 0 && stat(entry_name, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

/* Maps the file of rank 0; returns whether it is there. Nothing else of that number is opened: it may be a device. */
static int open_file(struct mail *it, const int64_t *offer)
{
    char entry_name[64], target[64] = "";
    struct stat found;
    int descriptor, is_it;

    snprintf(entry_name, sizeof entry_name, "/proc/%lld/fd/%lld", (long long)offer[OFFER_PROCESS],
             (long long)offer[OFFER_FILE]);
    if (readlink(entry_name, target, sizeof target - 1) < 0 || strncmp(target, "/memfd:collc", 12) != 0 ||
        !has_our_network(offer[OFFER_PROCESS]))
        return 0;
    descriptor = open(entry_name, O_RDWR | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    is_it = fstat(descriptor, &found) == 0 && found.st_size == offer[OFFER_BYTES] &&
           map_letters(it, descriptor, offer[OFFER_BYTES]) && memcmp(it->base, offer, OFFERS * sizeof *offer) == 0;
    close(descriptor);
    return is_it;
}

/* Shares memory for letters, on all ranks or on none; collective. */
static int open_letters(struct mail *it, MPI_Comm comm)
{
    int64_t offer[OFFERS] = {0, 0, 0, 0};
    int descriptor = -1, usable, everywhere = 0, error = MPI_Comm_size(comm, &it->ranks);

    if (error == MPI_SUCCESS)
        error = MPI_Comm_rank(comm, &it->rank);
    if (error != MPI_SUCCESS || measure_letters(it) == 0)
        return error;
    if (it->rank == 0)
        descriptor = make_file(it, offer);
    error = MPI_Bcast(offer, OFFERS, MPI_INT64_T, 0, comm);
    if (error == MPI_SUCCESS && offer[OFFER_BYTES] > 0) {
        usable = it->rank == 0 || open_file(it, offer);
        error = MPI_Allreduce(&usable, &everywhere, 1, MPI_INT, MPI_MIN, comm);
    }
    if (descriptor >= 0)
        close(descriptor);
    if (error != MPI_SUCCESS || !everywhere)
        close_letters(it);
    return error;
}

/* Whether a message of so many elements is a letter. */
static int is_letter(const struct call *call, int64_t elements)
{
    return call->mail != NULL && !exceeds(elements, call->element.size, call->mail->most);
}

/* The box of the next letter of a connection of this rank, and the turn at which it comes; counts it. */
static struct box *next_box(struct mail *it, int sends, int peer, int channel, uint32_t *turn)
{
    int64_t connections = (int64_t)it->ranks * CHANNELS, own = (int64_t)peer * CHANNELS + channel;
    int64_t from = sends ? it->rank : peer, to = sends ? peer : it->rank;
    uint32_t number = it->sent[sends ? own : connections + own]++;
    int64_t box = ((from * it->ranks + to) * CHANNELS + channel) * BOXES + number % BOXES;

    *turn = number / BOXES * 2 + !sends;
    return (struct box *)(void *)(it->base + BOX_HEAD + it->ranks * counts_bytes(it->ranks) +
                                  box * (it->most + BOX_HEAD));
}

/* Copies elements to a box. */
static int fill_box(const struct call *call, const struct place *from, int64_t elements, struct box *box)
{
    size_t bytes = (size_t)(elements * call->element.size);
    int position = 0;

    box->bytes = (uint32_t)bytes;
    if (!from->packed && call->element.dense == 0)
        return MPI_Pack(from->at, (int)elements, call->element.type, box->contents, (int)bytes, &position, call->comm);
    memcpy(box->contents, from->at, bytes);
    return MPI_SUCCESS;
}

/* Copies elements out of a box. */
static int empty_box(const struct call *call, const struct place *to, int64_t elements, const struct box *box)
{
    size_t bytes = (size_t)(elements * call->element.size);
    int position = 0;

    if (box->bytes != bytes)
        return MPI_ERR_TRUNCATE;
    if (!to->packed && call->element.dense == 0)
        return MPI_Unpack(box->contents, (int)bytes, &position, to->at, (int)elements, call->element.type, call->comm);
    memcpy(to->at, box->contents, bytes);
    return MPI_SUCCESS;
}

/* Puts a letter into its box, or takes it out, if it is its turn; sets *done if so. */
static int pass_letter(const struct call *call, struct box *box, uint32_t turn, int sends, const struct place *place,
                       int64_t elements, int *done)
{
    int error;

    if (__atomic_load_n(&box->turn, __ATOMIC_ACQUIRE) != turn)
        return MPI_SUCCESS;
    error = (sends ? fill_box(call, place, elements, box) : empty_box(call, place, elements, box));
    __atomic_store_n(&box->turn, turn + 1, __ATOMIC_RELEASE);
    *done = 1;
    return error;
}

/* Lets the MPI go on with its own messages, now and then: the program's may be under way. */
static int visit_mpi(const struct call *call)
{
    int any_there;

    if (call->mail == NULL || ++call->mail->polls % POLLS_WITHOUT_MPI != 0)
        return MPI_SUCCESS;
    return MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, call->comm, &any_there, MPI_STATUS_IGNORE);
}

#else /* no such memory */

static int open_letters(struct mail *it, MPI_Comm comm)
{
    (void)it, (void)comm;
    return MPI_SUCCESS;
}

static void close_letters(struct mail *it)
{
    (void)it;
}

static int is_letter(const struct call *call, int64_t elements)
{
    (void)call, (void)elements;
    return 0;
}

static struct box *next_box(struct mail *it, int sends, int peer, int channel, uint32_t *turn)
{
    (void)it, (void)sends, (void)peer, (void)channel, (void)turn;
    return NULL;
}

static int pass_letter(const struct call *call, struct box *box, uint32_t turn, int sends, const struct place *place,
                       int64_t elements, int *done)
{
    (void)call, (void)box, (void)turn, (void)sends, (void)place, (void)elements, (void)done;
    return MPI_SUCCESS;
}

static int visit_mpi(const struct call *call)
{
    (void)call;
    return MPI_SUCCESS;
}

#endif
