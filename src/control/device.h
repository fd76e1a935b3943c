/* device: how the GPU (or its stand-in) of a member is named in files, to compare runs. */
#ifndef ATT_CONTROL_DEVICE_H
#define ATT_CONTROL_DEVICE_H

#include "base/segment.h"

#define ATT_DEVICE_TEXT 96

/* "NVIDIA H200, 132 units"; the model comes from the driver's /proc files, "host" without them. */
const char *att_device_text(const att_segment_member_t *member, char *text, size_t size);

#endif
