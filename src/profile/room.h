/* room: space for one more entry of an array without a stored capacity. */
#ifndef ATT_PROFILE_ROOM_H
#define ATT_PROFILE_ROOM_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* `array` points to the array's pointer, which holds `count` entries of `size` bytes: it grows when
 * count is 0 or a power of two. 0, or -ATT_ENOMEM and the array as it was. */
int att_room_append(void *array, uint32_t count, size_t size);

#endif
