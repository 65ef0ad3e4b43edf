/* ---- The MPI under the program -------------------------------------------------------------------
 *
 * This file is preloaded into programs, and links no MPI: it would be another one than the program's.
 * What it needs of the MPI it looks for when the first call comes, by the names PMPI_, which reach the
 * MPI itself. So it may be loaded before the MPI is (Python), and into programs that have none (a shell).
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(OPEN_MPI) && defined(COLLC_OPEN_MPI) && !COLLC_OPEN_MPI
#error "mpicc is Open MPI's, mpiexec another MPI's"
#elif !defined(OPEN_MPI) && defined(COLLC_OPEN_MPI) && COLLC_OPEN_MPI
#error "mpiexec is Open MPI's, mpicc another MPI's"
#endif

/* Whether the MPI has persistent collectives, and how it calls them. MPI 4 has them. Open MPI 5 has them too, though it says
 * that it is MPI 3. Open MPI 4 has them as an extension. */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION == 4 && defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif
#define CIP_INIT "MPI_"
#define CIP_PERSISTENT 1
#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_MAJOR_VERSION == 4
#undef CIP_INIT
#define CIP_INIT "MPIX_"
#elif MPI_VERSION < 4 && !(defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#undef CIP_PERSISTENT
#define CIP_PERSISTENT 0
#endif

/* Whatever is linked together shares one copy of what is marked so. */
#define CIP_SHARED __attribute__((weak, visibility("hidden")))
#define CIP_EXPORT __attribute__((weak, visibility("default")))

#pragma GCC visibility push(hidden)

/* Handles and counts as they travel in calls: a register each, whichever the MPI's types are. */
typedef intptr_t cip_word;
typedef void (*cip_function)(void);
typedef char cip_needs_words_of_64_bits[sizeof(cip_word) == 8 ? 1 : -1];

enum { CIP_PATH = 4096 };

/* The path of the nth object that is loaded. */
struct cip_object {
    int nth, found;
    char path[CIP_PATH];
};

CIP_SHARED void *cip_library; /* where the MPI is, if not in the program's own scope */

static int cip_note_object(struct dl_phdr_info *info, size_t size, void *wanted)
{
    struct cip_object *object = wanted;

    (void)size;
    if (object->nth-- > 0)
        return 0;
    object->found = 1;
    object->path[0] = '\0';
    if (info->dlpi_name != NULL && strlen(info->dlpi_name) < CIP_PATH)
        strcpy(object->path, info->dlpi_name);
    return 1;
}

/* Finds the MPI among all that is loaded, where the program has it in a scope of its own. Allocates nothing: a rank that
 * had no memory would be left alone with its MPI. */
static void cip_find_library(void)
{
    struct cip_object object;
    int k;

    for (k = 0; cip_library == NULL; k++) {
        void *handle;

        object.nth = k;
        object.found = 0;
        dl_iterate_phdr(cip_note_object, &object);
        if (!object.found)
            return;
        if (object.path[0] == '\0' || (handle = dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD)) == NULL)
            continue;
        if (dlsym(handle, "PMPI_Initialized") != NULL)
            cip_library = handle;
        else
            dlclose(handle);
    }
}

/* The address of something of the MPI, or NULL. */
CIP_SHARED void *cip_address(const char *name);
CIP_SHARED void *cip_address(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    if (found == NULL && cip_library == NULL && dlsym(RTLD_DEFAULT, "PMPI_Initialized") == NULL)
        cip_find_library();
    if (found == NULL && cip_library != NULL)
        found = dlsym(cip_library, name);
    return found;
}

CIP_SHARED cip_function cip_find(const char *name);
CIP_SHARED cip_function cip_find(const char *name)
{
    void *address = cip_address(name);
    cip_function function;

    memcpy(&function, &address, sizeof function);
    return function;
}

/* What there must be, since the program called the function that it stands behind; with `large` the
 * function for ints will do. */
CIP_SHARED cip_function cip_behind(const char *name, int large);
CIP_SHARED cip_function cip_behind(const char *name, int large)
{
    cip_function function = cip_find(name);
    char shorter[64];

    if (function == NULL && large) {
        snprintf(shorter, sizeof shorter, "%.*s", (int)strlen(name) - 2, name);
        function = cip_find(shorter);
    }
    if (function == NULL) {
        fprintf(stderr, "collc: the MPI of this program has no %s\n", name);
        abort();
    }
    return function;
}

#ifdef OPEN_MPI
/* Its predefined handles are addresses of variables. */
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) \
    (__extension__({ \
        static void *cip_at; \
        if (cip_at == NULL) \
            cip_at = cip_address(#global); \
        (type)cip_at; \
    }))
#define OMPI_C_MPI_COMM_NULL_COPY_FN cip_copy_nothing

static inline int cip_copy_nothing(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}
#endif
