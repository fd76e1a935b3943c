/*
 * What a strategy's process sends. The worker of a real strategy host answers with the input's
 * bytes instead of running a strategy: a strategy has its process to itself and may have written
 * anything. The host must refuse it or give settings of the space.
 */
#include "search/strategy_host.h"
#include "search/worker.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct script {
    size_t size;
    uint8_t bytes[65536];
} script_t;

static script_t *script; /* shared with the workers */
static struct att_strategy_host *host;

/* In the place of search/worker.c. */
void att_worker_serve(int fd)
{
    uint8_t ignored[4096];
    for (size_t sent = 0; sent < script->size;) {
        ssize_t n = send(fd, script->bytes + sent, script->size - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        sent += (size_t)n;
    }
    shutdown(fd, SHUT_WR);
    while (recv(fd, ignored, sizeof ignored, 0) > 0)
        continue;
    close(fd);
}

static void stop(void)
{
    att_strategy_host_destroy(host);
}

static void start(void)
{
    att_error_t error;
    script = mmap(NULL, sizeof *script, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (script == MAP_FAILED ||
        att_strategy_host_create(NULL, ATT_HOST_CHILD, 0.05, &host, &error) != ATT_OK)
        abort();
    atexit(stop);
}

static const att_space_t *space(void)
{
    static const att_subspace_t subspace = {.algorithm = ATT_ALGORITHM_RING,
                                            .protocol = ATT_PROTOCOL_SIMPLE,
                                            .transport = ATT_TRANSPORT_KEEP,
                                            .channels_min = 1,
                                            .channels_max = 8,
                                            .channels_step = 1};
    static const att_space_t s = {.abi = ATT_STRATEGY_ABI,
                                  .size = sizeof s,
                                  .bytes = 1 << 20,
                                  .collective = ATT_COLLECTIVE_ALL_REDUCE,
                                  .ranks = 2,
                                  .nodes = 1,
                                  .subspace_count = 1,
                                  .subspaces = &subspace};
    return &s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (host == NULL)
        start();
    script->size = size < sizeof script->bytes ? size : sizeof script->bytes;
    memcpy(script->bytes, data, script->size);
    att_setting_t settings[64], best;
    struct att_search *search;
    att_error_t error = {""};
    uint32_t count;
    if (att_search_begin(host, "fuzz", space(), 1, &search, &error) != ATT_OK)
        return 0;
    for (int asks = 0; asks < 4; asks++) {
        int status = att_search_ask(search, 8, &error), tries = 0;
        while (status == ATT_OK &&
               (status = att_search_poll(search, settings, &count, &error)) == 0 && tries++ < 200)
            poll(NULL, 0, 1);
        if (status == 1 && count > 8)
            abort();
        if (status > 1) /* neither an answer nor an error */
            abort();
        if (status != 1)
            break;
        att_search_best(search, &best, &error);
    }
    att_search_end(search);
    return 0;
}
