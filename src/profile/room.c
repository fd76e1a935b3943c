#include "profile/room.h"

#include <stdlib.h>

int att_room_append(void *array, uint32_t count, size_t size)
{
    char **items = array;
    if (count != 0 && (count & (count - 1)) != 0)
        return ATT_OK;
    char *grown = realloc(*items, (count == 0 ? 1 : 2 * (size_t)count) * size);
    if (grown == NULL)
        return -ATT_ENOMEM;
    *items = grown;
    return ATT_OK;
}
