/*
 * step: how long a training step takes in which compute overlaps one collective.
 *
 * Both begin together. While the collective runs, its channels take SMs and memory bandwidth from
 * the compute, which then advances at the rate r(n) = 1 / (1 + slowdown n) of its own speed; when
 * the collective has ended, at full speed:
 *
 *     step = t                      when r t >= compute   (communication is exposed)
 *     step = compute + (1 - r) t    otherwise             (communication is hidden, but not free)
 *
 * with t the collective's duration. This is the trade that Lagom (arXiv 2602.20656) makes: its
 * objective is the makespan of overlapped compute and communication, not bandwidth, and its greedy
 * choice weighs compute slowed against communication saved. Linear cost a channel, as there.
 */
#ifndef ATT_SIM_STEP_H
#define ATT_SIM_STEP_H

typedef struct att_sim_step {
    double compute_us; /* of one step, alone on the device; 0: there is no compute */
    double slowdown;   /* compute time over compute alone, minus 1, for each channel in use */
} att_sim_step_t;

double att_sim_step_us(const att_sim_step_t *step, double collective_us, int channels);

#endif
