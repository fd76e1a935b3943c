/*
 * clock_truth RUN [LIMIT_US]: how far the calibrated clocks of a recorded run are from the truth,
 * which is known when the errors were injected (ATTUNE_CLOCK_INJECT): all agents ran on one
 * machine, so every node's clock is the same CLOCK_MONOTONIC, bent by what its file's header says.
 *
 * Prints a line a node and one over all; exit status 1 when the 99th percentile is above LIMIT_US
 * or a stated uncertainty was exceeded in more than 1 % of the samples.
 */
#include "base/segment.h"
#include "profile/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES 2000

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double bend(const att_trace_node_t *node, double true_ns)
{
    return (double)node->injected_offset_ns + node->injected_drift * true_ns;
}

static uint32_t member_on(const att_catalog_t *c, uint32_t node)
{
    for (uint32_t m = 0; m < c->member_count; m++)
        if (c->members[m].node == node && c->members[m].clock_kind == ATT_CLOCK_HOST)
            return m;
    return ATT_CATALOG_NONE;
}

static void print_line(const char *who, double *errors, int count)
{
    qsort(errors, (size_t)count, sizeof *errors, by_value);
    printf("%-8s error us: median %.3f  p99 %.3f  max %.3f  (%d samples)\n", who, errors[count / 2],
           errors[count * 99 / 100], errors[count - 1], count);
}

int main(int argc, char **argv)
{
    struct att_trace *trace;
    att_error_t error;
    if (argc < 2 || att_trace_open(argv[1], &trace, &error) != ATT_OK ||
        att_trace_calibrated(trace, NULL, &error) != ATT_OK) {
        fprintf(stderr, "clock_truth: %s\n", argc < 2 ? "no run folder" : error.text);
        return 2;
    }
    const att_catalog_t *c = att_trace_catalog(trace);
    double *all = malloc(sizeof *all * SAMPLES * c->node_count),
           *one = malloc(sizeof *one * SAMPLES);
    int count = 0, beyond = 0;
    att_trace_node_t reference = {0};
    for (uint32_t n = 0; n < c->node_count; n++)
        if (c->nodes[n].agent == 0)
            att_trace_node(trace, n, &reference);
    for (uint32_t n = 0; all != NULL && one != NULL && n < c->node_count; n++) {
        att_trace_node_t node;
        att_trace_node(trace, n, &node);
        uint32_t member = member_on(c, n);
        if (node.agent == 0 || member == ATT_CATALOG_NONE)
            continue;
        for (int i = 0; i < SAMPLES; i++) {
            int64_t local = node.first_ns + (node.last_ns - node.first_ns) / SAMPLES * i;
            double truth =
                ((double)local - (double)node.injected_offset_ns) / (1 + node.injected_drift);
            /* Differences only: the numbers themselves are beyond a double's nanoseconds. */
            att_clock_reading_t r = att_trace_read(trace, member, local);
            double wanted = bend(&reference, truth) - bend(&node, truth);
            double off = fabs((double)(r.ns - local) - wanted);
            one[i] = off * 1e-3;
            all[count++] = off * 1e-3;
            beyond += off > (double)r.uncertainty_ns + 1;
        }
        char who[32];
        snprintf(who, sizeof who, "node %u", node.agent);
        print_line(who, one, SAMPLES);
        printf("         offset %.6f s, drift %.3f ppm injected; %u points, %u not near the lowest "
               "round trip\n",
               (double)(node.injected_offset_ns - reference.injected_offset_ns) * 1e-9,
               (node.injected_drift - reference.injected_drift) * 1e6, node.model->count,
               node.model->rejected);
    }
    if (count == 0) {
        fprintf(stderr, "clock_truth: no node beside the reference\n");
        return 2;
    }
    print_line("all", all, count);
    printf("beyond the stated uncertainty: %d of %d\n", beyond, count);
    double high = all[count * 99 / 100];
    free(all);
    free(one);
    att_trace_close(trace);
    return (argc > 2 && high > atof(argv[2])) || beyond * 100 > count;
}
