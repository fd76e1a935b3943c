#include "base/pins.h"

#include "base/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS are missing on purpose: they are ceilings, there is a choice
 * left below them. */
static const struct {
    const char *name;
    uint32_t pin;
} variables[] = {
    {"NCCL_ALGO", ATT_PIN_ALGORITHM},
    {"NCCL_PROTO", ATT_PIN_PROTOCOL},
    {"NCCL_P2P_DISABLE", ATT_PIN_TRANSPORT},
    {"NCCL_P2P_LEVEL", ATT_PIN_TRANSPORT},
    {"NCCL_SHM_DISABLE", ATT_PIN_TRANSPORT},
    {"NCCL_NET_DISABLE_INTRA", ATT_PIN_TRANSPORT},
    {"NCCL_MIN_NCHANNELS", ATT_PIN_CHANNELS},
    {"NCCL_MIN_CTAS", ATT_PIN_CHANNELS},
    {"NCCL_NTHREADS", ATT_PIN_THREADS},
    {"NCCL_LL128_NTHREADS", ATT_PIN_THREADS},
    {"NCCL_THREAD_THRESHOLDS", ATT_PIN_THREADS},
    {"NCCL_BUFFSIZE", ATT_PIN_CHUNK},
    {"NCCL_LL_BUFFSIZE", ATT_PIN_CHUNK},
    {"NCCL_LL128_BUFFSIZE", ATT_PIN_CHUNK},
    {"NCCL_NVLS_CHUNKSIZE", ATT_PIN_CHUNK},
};

uint32_t att_pins_read(char *names, size_t size)
{
    uint32_t pins = 0;
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i].name);
        if (value == NULL || value[0] == '\0')
            continue;
        pins |= variables[i].pin;
        int n =
            snprintf(names + used, size - used, "%s%s", used > 0 ? ", " : "", variables[i].name);
        used = n > 0 && (size_t)n < size - used ? used + (size_t)n : size - 1;
    }
    return pins;
}

const char *att_pins_own_variable(const void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

uint32_t att_pins_channels_most(att_variable_fn variable, const void *context)
{
    static const char *const ceilings[] = {"NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS"};
    long least = 0;
    for (size_t i = 0; i < sizeof ceilings / sizeof ceilings[0]; i++) {
        const char *value = variable(context, ceilings[i]);
        long most = value != NULL ? strtol(value, NULL, 10) : 0;
        if (most > 0 && (least == 0 || most < least))
            least = most;
    }
    return least > UINT16_MAX ? UINT16_MAX : (uint32_t)least;
}

enum { NO_POLICY = -1, EFFICIENCY = 1, ZERO = 2 };

/* A digit, or names between "|" (getEnvCtaPolicyOnce, src/init.cc). */
static int policy_of(const char *text)
{
    static const char *const names[] = {"DEFAULT", "EFFICIENCY", "ZERO"};
    int policy = NO_POLICY;
    if (text == NULL)
        return policy;
    if (text[0] >= '0' && text[0] <= '9')
        return text[0] <= '2' ? text[0] - '0' : policy;
    for (const char *at = text; *at != '\0'; at += strcspn(at, "|"), at += *at == '|')
        for (int i = 0; i < 3; i++)
            if (strcspn(at, "|") == strlen(names[i]) &&
                strncasecmp(at, names[i], strlen(names[i])) == 0)
                policy = policy == NO_POLICY ? i : policy | i;
    return policy;
}

bool att_pins_efficiency(att_variable_fn variable, const void *context, int configured)
{
    int policy = policy_of(variable(context, "NCCL_CTA_POLICY"));
    if (policy == NO_POLICY)
        policy = configured;
    return (policy & EFFICIENCY) != 0 && (policy & ZERO) == 0 &&
           variable(context, "NCCL_ALGO") == NULL && variable(context, "NCCL_PROTO") == NULL;
}

const char *att_pins_variable(size_t i, uint32_t *pin)
{
    if (i >= sizeof variables / sizeof variables[0])
        return NULL;
    *pin = variables[i].pin;
    return variables[i].name;
}
