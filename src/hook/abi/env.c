#include "hook/abi/env.h"

#include "hook/variant.h"

#include <stdlib.h>

static int init_v1(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
    return ATT_NCCL_SUCCESS;
}

static int init_v2(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
                   att_nccl_logger_fn logger)
{
    return ATT_NCCL_SUCCESS;
}

static int finalize(void)
{
    return ATT_NCCL_SUCCESS;
}

/* As without a plugin, but for what a variant in the making differs in. */
static const char *get(const char *name)
{
    const char *value;
    att_variant_asked();
    return att_variant_variable(name, &value) ? value : getenv(name);
}

__attribute__((visibility("default"))) const att_env_v1_t ncclEnvPlugin_v1 = {
    .name = "attune", .init = init_v1, .finalize = finalize, .get = get};

__attribute__((visibility("default"))) const att_env_v2_t ncclEnvPlugin_v2 = {
    .name = "attune", .init = init_v2, .finalize = finalize, .get = get};
