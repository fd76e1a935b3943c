/* datatype: NCCL's element types by the names that its profiler gives (src/collectives.cc). */
#ifndef ATT_HOOK_DATATYPE_H
#define ATT_HOOK_DATATYPE_H

#include <stddef.h>
#include <stdint.h>

#define ATT_DATATYPE_UNKNOWN 255

typedef struct att_datatype {
    const char *name;
    uint8_t number; /* ncclDataType_t */
    uint8_t bytes;  /* of one element */
} att_datatype_t;

/* NULL for an unknown name or NULL. */
const att_datatype_t *att_datatype_parse(const char *name);

#endif
