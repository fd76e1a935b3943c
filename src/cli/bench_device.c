#include "cli/bench_device.h"

int att_device_open(const att_device_ops_t *ops, att_device_t *device, att_error_t *error)
{
    void *state;
    int rc = ops->open(&state, error);
    if (rc != 0)
        return rc;
    device->ops = ops;
    device->state = state;
    return ATT_OK;
}

void att_device_close(att_device_t *device)
{
    if (device->ops != NULL)
        device->ops->close(device->state);
    device->ops = NULL;
}
