/*
 * model: the two-phase performance model of a collective, as pure arithmetic.
 *
 * AutoCCL (NSDI'25), section 4.2: a channel moves its share in chunks; each chunk passes phase 0,
 * the transport (peer to local buffer), and phase 1, the protocol (buffer to threads, reduce,
 * store). A round moves X = channels * chunk bytes and takes, with start-ups a0, a1 and peak
 * bandwidths B0, B1,
 *
 *     s0 = a0 + X copies / payload / (B0 g0(X / payload))          equations 4 and 5,
 *     s1 = a1 X / payload / (channels threads w) + X / payload / (B1 g1(channels threads))   times
 * X g(q) = 1 / (1 + (q / q0)^p)                  congestion, falls with what is in flight
 *
 * with w = 16 bytes, what one thread loads at once (the paper counts threads, not bytes; a1 is
 * therefore the effective start-up of one 16-byte load among many in the air, nanoseconds).
 * The paper lets g grow, which cannot give the peaks of its figure 3; here it falls. Repairs that
 * the paper's equations lack:
 *   - payload: the data share of what is moved (LL 1/2, LL128 15/16, Simple 1);
 *   - copies: SHM moves every byte twice in phase 0 (device to host, host to device);
 *   - channel: one thread block moves at most so much, whatever its threads (NCCL 2.30 has the same
 *     notion in graph/tuning.cc, perChMaxRingLL128Bws); adds X / payload / (channels bc) to s1;
 *   - overlap: of the shorter phase the share that hides behind the longer. The paper takes
 *     min(bw0, bw1), i.e. full overlap, under which threads cannot matter while phase 0 is the
 *     slower one, against figure 3; serial phases would be overlap 0. The part that overlaps is
 *     paid once, while the pipeline of phases fills;
 *   - rounds: ceil(M / X); an unfinished last round costs at least `tail` of a full one, because
 *     chunks are dealt whole (NCCL 2.30 evens out a part of it: calcCollChunking, lastChunkSize);
 *   - depth: hops that a chunk passes before the first rank has its result (trees), in rounds;
 *   - launch and hop latency, which carry the model to small messages.
 * Bandwidths are in units of the algorithm's message bytes: the bytes that a rank really sends,
 * such as 2 (n-1)/n of an AllReduce, are part of the constants.
 */
#ifndef ATT_SURFACE_MODEL_H
#define ATT_SURFACE_MODEL_H

#define ATT_MODEL_LOAD_BYTES 16.0 /* w */

typedef struct att_model_phase {
    double startup_us;
    double bandwidth;  /* peak, bytes per microsecond */
    double congestion; /* q0: bytes in flight (phase 0) or threads at work (phase 1) */
    double power;      /* p */
} att_model_phase_t;

/* How one (algorithm, protocol) moves data over one transport. */
typedef struct att_model_path {
    att_model_phase_t transport; /* phase 0 */
    att_model_phase_t protocol;  /* phase 1 */
    double payload;              /* (0, 1] */
    double copies;               /* >= 1 */
    double channel;              /* what one channel can move, bytes per microsecond */
    double overlap;              /* 0..1 */
    double tail;                 /* 0..1 */
    double latency_us;           /* launch and all hops of an empty message */
    double depth;                /* >= 1 */
} att_model_path_t;

/* What a job beside the collective does to the constants: factors, 1 on an idle device. */
typedef struct att_model_load {
    double transport_startup, transport_bandwidth, transport_congestion;
    double protocol_startup, protocol_bandwidth, protocol_congestion;
} att_model_load_t;

/* Microseconds; every argument is above 0 except bytes, which may be 0. Thread-safe. */
double att_model_time_us(const att_model_path_t *path, const att_model_load_t *load, double bytes,
                         double channels, double threads, double chunk_bytes);

#endif
