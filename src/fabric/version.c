#include "fabric/version.h"

#include "base/log.h"
#include "fabric/nccl_abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int version = NCCL_VERSION_CODE;

static void read_version(void)
{
    const char *text = getenv("ATTUNE_FABRIC_VERSION");
    if (text == NULL || text[0] == '\0')
        return;
    int minor = -1, patch = -1, used = 0;
    if (sscanf(text, "2.%d.%d%n", &minor, &patch, &used) != 2 || text[used] != '\0' || minor < 21 ||
        minor > 99 || patch < 0 || patch > 99) {
        att_log(ATT_LOG_ERROR,
                "ATTUNE_FABRIC_VERSION=%.40s: expected an NCCL version from 2.21.0 on", text);
        exit(2);
    }
    version = 20000 + minor * 100 + patch;
}

int att_fabric_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_version);
    return version;
}
