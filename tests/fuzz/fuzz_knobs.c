/* The catalogue of knobs: whatever the bytes, a reason or a catalogue that answers. */
#include "search/knobs.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    att_knobs_t *knobs;
    att_error_t error = {""};
    if (att_knobs_parse((const char *)data, size, &knobs, &error) != ATT_OK) {
        if (error.text[0] == '\0')
            abort();
        return 0;
    }
    att_knobs_question_t question = ATT_KNOBS_OPEN;
    for (int knob = ATT_KNOB_CHANNELS; knob < ATT_KNOB_COUNT; knob++) {
        question.set[knob] = true;
        question.value[knob] = 128;
    }
    att_knobs_answer_t answer;
    att_knobs_ask(knobs, &question, &answer);
    if (answer.legal != (answer.pairs != 0))
        abort();
    att_knobs_destroy(knobs);
    return 0;
}
