#include "cli/variants_check.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CHANNELS 32 /* more than NCCL takes by itself on the GPUs of today */

int att_variants_check(const att_variants_t *variants, att_variable_fn variable,
                       const void *context, att_error_t *error)
{
    static const char *const fixed[] = {"NCCL_NTHREADS", "NCCL_THREAD_THRESHOLDS"};
    /* What hook/topology.h cannot be right beside. */
    static const char *const ways[] = {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_TOPO_FILE",
                                       "NCCL_GRAPH_FILE"};
    const char *plugin = variable(context, "NCCL_ENV_PLUGIN");
    if (plugin != NULL && plugin[0] != '\0' && strstr(plugin, "libattune-nccl.so") == NULL)
        return att_fail(error, ATT_EUSAGE,
                        "NCCL_ENV_PLUGIN is set to '%.100s'; --variants needs its place: unset it",
                        plugin);
    const char *shared = variable(context, "NCCL_COMM_SPLIT_SHARE_RESOURCES");
    if (shared != NULL && strcmp(shared, "1") == 0)
        return att_fail(error, ATT_EUSAGE,
                        "--variants: with NCCL_COMM_SPLIT_SHARE_RESOURCES=1 a variant would use "
                        "the connections of its communicator: unset it");
    for (uint32_t i = 0; i < variants->count; i++)
        for (size_t f = 0; variants->items[i].threads != 0 && f < 2; f++) {
            const char *value = variable(context, fixed[f]);
            if (value != NULL && value[0] != '\0')
                return att_fail(error, ATT_EUSAGE,
                                "--variants: %s fixes the threads: unset it, or leave nt out",
                                fixed[f]);
        }
    for (uint32_t i = 0; i < variants->count; i++)
        for (size_t f = 0; variants->items[i].transport == ATT_TRANSPORT_SHM && f < 4; f++) {
            const char *value = variable(context, ways[f]);
            if (value != NULL && value[0] != '\0')
                return att_fail(error, ATT_EUSAGE,
                                "--variants: %s fixes the transport: unset it, or leave shm out",
                                ways[f]);
        }
    const char *buffer = variable(context, "NCCL_BUFFSIZE");
    if (variants->buffers && buffer != NULL && buffer[0] != '\0')
        return att_fail(error, ATT_EUSAGE,
                        "--variants: NCCL_BUFFSIZE fixes the buffers: unset it, or leave buffer "
                        "out");
    return ATT_OK;
}

att_variants_cost_t att_variants_cost(const att_variants_t *variants, att_variable_fn variable,
                                      const void *context)
{
    uint32_t most = att_pins_channels_most(variable, context);
    uint32_t channels = most > 0 && most < MOST_CHANNELS ? most : MOST_CHANNELS;
    return (att_variants_cost_t){channels, att_variants_bytes(variants, channels)};
}
