/* What a program answers to the strategy exec, of any bytes: refused with one line that a terminal
 * can take, or settings that can be. */
#include "../../plugins/exec/message.h"

#include <stdlib.h>
#include <string.h>

#define MOST 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reason(const char *why)
{
    if (why[0] == '\0')
        abort();
    for (const char *c = why; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            abort();
}

static void check_setting(const att_setting_t *x)
{
    if (x->algorithm < ATT_ALGORITHM_KEEP || x->algorithm >= ATT_ALGORITHM_COUNT ||
        x->protocol < ATT_PROTOCOL_KEEP || x->protocol >= ATT_PROTOCOL_COUNT ||
        x->transport < ATT_TRANSPORT_KEEP || x->transport >= ATT_TRANSPORT_COUNT)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    att_setting_t settings[MOST];
    uint32_t samples[MOST], count = 0;
    char why[300] = "", *line = malloc(size + 1); /* of its own, so that ASan sees its end */
    if (line == NULL)
        abort();
    memcpy(line, data, size);
    line[size] = '\0';
    if (message_ready(line, why, sizeof why) != 0)
        check_reason(why);
    why[0] = '\0';
    if (message_settings(line, settings, samples, MOST, &count, why, sizeof why) != 0) {
        check_reason(why);
    } else {
        if (count > MOST)
            abort();
        for (uint32_t i = 0; i < count; i++) {
            check_setting(&settings[i]);
            if (samples[i] > ATT_STRATEGY_SAMPLES)
                abort();
        }
    }
    why[0] = '\0';
    if (message_best(line, &settings[0], why, sizeof why) != 0)
        check_reason(why);
    else
        check_setting(&settings[0]);
    free(line);
    return 0;
}
