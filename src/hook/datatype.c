#include "hook/datatype.h"

#include <string.h>

static const att_datatype_t datatypes[] = {
    {"ncclFloat32", 7, 4}, {"ncclBfloat16", 9, 2},    {"ncclFloat16", 6, 2},
    {"ncclInt8", 0, 1},    {"ncclInt32", 2, 4},       {"ncclUint8", 1, 1},
    {"ncclUint32", 3, 4},  {"ncclInt64", 4, 8},       {"ncclUint64", 5, 8},
    {"ncclFloat64", 8, 8}, {"ncclFloat8e4m3", 10, 1}, {"ncclFloat8e5m2", 11, 1},
};

const att_datatype_t *att_datatype_parse(const char *name)
{
    if (name == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof datatypes / sizeof datatypes[0]; i++)
        if (strcmp(name, datatypes[i].name) == 0)
            return &datatypes[i];
    return NULL;
}
