/* Communicator variants: whether this NCCL and these settings allow them, and what they cost. */
#include "base/names.h"
#include "cli/doctor.h"
#include "cli/variants_check.h"
#include "search/knobs.h"

#include <stdio.h>
#include <string.h>

#define OLDEST_VARIANTS 22907 /* NCCL_NO_CACHE, misc/param.cc of NCCL 2.29.7 */

static const char *variable(const void *context, const char *name)
{
    return att_doctor_variable(context, name);
}

static const att_nccl_copy_t *copy_meant(const att_doctor_t *d)
{
    for (int i = 0; i < d->copy_count; i++)
        if (d->copies[i].version == d->version)
            return &d->copies[i];
    return NULL;
}

/* Why there can be none, with what to do in *remedy; false: nothing is in the way. */
static bool refused(const att_doctor_t *d, const att_variants_t *variants, char why[300],
                    const char **remedy)
{
    const att_nccl_copy_t *copy = copy_meant(d);
    char version[16];
    att_error_t error = {""};
    if (d->version < OLDEST_VARIANTS) {
        snprintf(why, 300,
                 "NCCL %s reads the values once a process; since 2.29.7 it reads them for each "
                 "communicator",
                 att_nccl_version_text(d->version, version, sizeof version));
        *remedy = "use NCCL 2.29.7 or newer";
    } else if (variants->buffers && d->version >= ATT_BUFFER_VARIANTS_UNTIL) {
        snprintf(why, 300, "buffer: NCCL %s takes a chunk for each call",
                 att_nccl_version_text(d->version, version, sizeof version));
        *remedy = "leave buffer out: the chunk is searched without it";
    } else if (copy == NULL || !copy->pnccl) {
        snprintf(why, 300, "they are made by the preload, which cannot stand before this NCCL");
        *remedy = "link NCCL as libnccl.so.2, not statically";
    } else if (att_variants_check(variants, variable, d, &error) != ATT_OK) {
        snprintf(why, 300, "%.290s", error.text);
        *remedy = "unset it, or give up the variants";
    } else {
        return false;
    }
    return true;
}

void att_doctor_variants(att_doctor_t *d)
{
    att_variants_t variants;
    att_error_t error = {""};
    const bool asked = d->config.variants[0] != '\0';
    if (att_variants_parse(asked ? d->config.variants : "nt=128,256,512", &variants, &error) !=
        ATT_OK) {
        att_doctor_add(d, "variants", ATT_CHECK_FAIL, "correct the list", "%s", error.text);
        return;
    }
    char why[300], cap[24], note[64] = "";
    const char *remedy = NULL;
    if (d->version == 0) {
        att_doctor_add(d, "variants", ATT_CHECK_SKIP, NULL,
                       "no NCCL answered, which decides whether they can be made");
        return;
    }
    if (refused(d, &variants, why, &remedy)) {
        att_doctor_add(d, "variants", asked ? ATT_CHECK_FAIL : ATT_CHECK_SKIP,
                       asked ? remedy : NULL, "%s%s",
                       asked ? "" : "not asked for, and could not be made: ", why);
        return;
    }
    att_variants_cost_t cost = att_variants_cost(&variants, variable, d);
    uint64_t most = (uint64_t)d->config.variants_memory;
    att_bytes_text(most, cap, sizeof cap);
    const double gib = (double)cost.bytes / 1073741824.0;
    bool fabric = copy_meant(d)->fabric;
    if (asked && !fabric && cost.bytes > most) {
        att_doctor_add(d, "variants", ATT_CHECK_FAIL,
                       "name fewer, set NCCL_MAX_CTAS, or allow more by --variants-memory",
                       "%u of up to %u channels may take %.1f GiB on each GPU for every "
                       "communicator, but --variants-memory is %s",
                       variants.count, cost.channels, gib, cap);
        return;
    }
    for (uint32_t i = 0; asked && i < variants.count; i++) {
        d->variant_buffers |= variants.items[i].buffer != 0;
        d->variant_threads |= variants.items[i].threads != 0;
        d->variant_transports |= variants.items[i].transport != ATT_TRANSPORT_KEEP;
    }
    if (fabric)
        snprintf(note, sizeof note, "host memory of the fabric alone");
    else
        snprintf(note, sizeof note, "up to %.1f GiB on each GPU", gib);
    att_doctor_add(d, "variants", ATT_CHECK_PASS, NULL,
                   "%s%u more communicators for each one of the job, of up to %u channels: %s; not "
                   "for communicators over several nodes, of groups, or that do not block",
                   asked ? "" : "not asked for; --variants nt=128,256,512 would make ",
                   variants.count, cost.channels, note);
}
