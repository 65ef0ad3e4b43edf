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
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#if defined(OPEN_MPI) && defined(COLLC_OPEN_MPI) && !COLLC_OPEN_MPI
#error "mpicc is Open MPI's, mpiexec another MPI's"
#elif !defined(OPEN_MPI) && defined(COLLC_OPEN_MPI) && COLLC_OPEN_MPI
#error "mpiexec is Open MPI's, mpicc another MPI's"
#endif

/* Whatever is linked together shares one copy of what is marked so. */
#define CIP_SHARED __attribute__((weak, visibility("hidden")))
#define CIP_EXPORT __attribute__((weak, visibility("default")))

#pragma GCC visibility push(hidden)

/* Handles and counts as they travel in calls: a register each, whichever the MPI's types are. */
typedef intptr_t cip_word;
typedef void (*cip_function)(void);
typedef char cip_needs_words_of_64_bits[sizeof(cip_word) == 8 ? 1 : -1];

enum { CIP_OBJECTS = 4096 };

struct cip_objects {
    int number;
    char *name[CIP_OBJECTS];
};

CIP_SHARED void *cip_library; /* where the MPI is, if not in the program's own scope */

static int cip_list_object(struct dl_phdr_info *info, size_t size, void *list)
{
    struct cip_objects *objects = list;

    (void)size;
    if (objects->number < CIP_OBJECTS && info->dlpi_name != NULL && info->dlpi_name[0] != '\0')
        objects->name[objects->number++] = strdup(info->dlpi_name);
    return 0;
}

/* Finds the MPI among all that is loaded, where the program has it in a scope of its own. */
static void cip_find_library(void)
{
    struct cip_objects *objects = calloc(1, sizeof *objects);
    int k;

    if (objects == NULL)
        return;
    dl_iterate_phdr(cip_list_object, objects);
    for (k = 0; k < objects->number; k++) {
        const char *name = objects->name[k];
        void *handle = NULL;

        if (cip_library == NULL && name != NULL)
            handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (handle != NULL && dlsym(handle, "PMPI_Initialized") != NULL)
            cip_library = handle;
        else if (handle != NULL)
            dlclose(handle);
        free(objects->name[k]);
    }
    free(objects);
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
