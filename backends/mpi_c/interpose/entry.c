/* ---- What this file serves ------------------------------------------------------------------------------ */

@CALLS@
static struct cip_entry cip_these[] = {
@ENTRIES@
};

__attribute__((constructor)) static void cip_enlist_these(void)
{
    size_t k;

    for (k = 0; k < sizeof cip_these / sizeof *cip_these; k++)
        cip_enlist(&cip_these[k]);
}
