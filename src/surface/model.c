#include "surface/model.h"

#include <math.h>

static double moved_us(const att_model_phase_t *phase, double bandwidth_factor,
                       double congestion_factor, double bytes, double in_flight)
{
    double crowding = pow(in_flight / (phase->congestion * congestion_factor), phase->power);
    return bytes * (1.0 + crowding) / (phase->bandwidth * bandwidth_factor);
}

double att_model_time_us(const att_model_path_t *path, const att_model_load_t *load, double bytes,
                         double channels, double threads, double chunk_bytes)
{
    if (bytes <= 0)
        return path->latency_us;
    double round = fmin(channels * chunk_bytes, bytes);
    double moved = round / path->payload;
    double workers = channels * threads;

    double s0 = path->transport.startup_us * load->transport_startup +
                moved_us(&path->transport, load->transport_bandwidth, load->transport_congestion,
                         moved * path->copies, moved);
    double s1 = path->protocol.startup_us * load->protocol_startup * moved /
                    (workers * ATT_MODEL_LOAD_BYTES) +
                moved / (channels * path->channel) +
                moved_us(&path->protocol, load->protocol_bandwidth, load->protocol_congestion,
                         moved, workers);

    double shorter = fmin(s0, s1);
    double step = fmax(s0, s1) + (1.0 - path->overlap) * shorter;
    double whole = floor(bytes / round);
    double rest = bytes / round - whole;
    double rounds = whole + (rest > 0 ? path->tail + (1.0 - path->tail) * rest : 0);
    return path->latency_us + path->overlap * shorter + (rounds + path->depth - 1.0) * step;
}
