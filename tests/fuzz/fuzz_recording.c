/* Files that the strategy afnfa is trained on, of any bytes: refused with one line, or sane rows.
 */
#include "../../plugins/afnfa/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static recorded_t rows[RECORDING_ROWS];
    recording_t recording = {.rows = rows};
    char why[200] = "", *text = malloc(size + 1);
    if (text == NULL)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    int rc = recording_parse(text, size, &recording, why, sizeof why);
    free(text);
    if (rc != 0 && (why[0] == '\0' || strchr(why, '\n') != NULL))
        abort();
    if (rc == 0 && recording.count == 0)
        abort();
    for (int i = 0; i < recording.count; i++) {
        const recorded_t *row = &recording.rows[i];
        if (!(row->us > 0 && isfinite(row->us)) || row->setting.algorithm < 0 ||
            row->setting.algorithm >= ATT_ALGORITHM_COUNT || row->setting.protocol < 0 ||
            row->setting.protocol >= ATT_PROTOCOL_COUNT)
            abort();
    }
    return 0;
}
