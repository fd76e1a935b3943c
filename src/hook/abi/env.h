/*
 * env: NCCL's environment plugin, versions 1 (NCCL 2.28.7) and 2 (2.30.7), which NCCL asks for
 * every variable (src/include/plugin/env/env_v1.h, env_v2.h). Declared anew.
 */
#ifndef ATT_HOOK_ABI_ENV_H
#define ATT_HOOK_ABI_ENV_H

#include "hook/abi/nccl.h"

typedef struct att_env_v1 {
    const char *name;
    int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
    int (*finalize)(void);
    const char *(*get)(const char *name);
} att_env_v1_t;

typedef struct att_env_v2 {
    const char *name;
    int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
                att_nccl_logger_fn logger);
    int (*finalize)(void);
    const char *(*get)(const char *name);
} att_env_v2_t;

extern const att_env_v1_t ncclEnvPlugin_v1;
extern const att_env_v2_t ncclEnvPlugin_v2;

#endif
