#include "control/pulse.h"

void att_pulse_note(att_pulse_t *pulse, uint64_t calls, uint64_t now_ns)
{
    pulse->looked_ns = now_ns;
    if (pulse->first_ns == 0) {
        pulse->first_ns = pulse->last_ns = now_ns;
        pulse->calls = pulse->first_calls = calls;
    } else if (calls > pulse->calls) {
        pulse->last_ns = now_ns;
        pulse->calls = calls;
    }
}

bool att_pulse_beats(const att_pulse_t *pulse, uint64_t now_ns)
{
    uint64_t calls = pulse->calls - pulse->first_calls;
    uint64_t interval_ns = calls > 0 ? (pulse->last_ns - pulse->first_ns) / calls : 0;
    return now_ns <= pulse->last_ns + ATT_PULSE_REST_NS + ATT_PULSE_BEATS * interval_ns;
}
