/* Whatever srun, scontrol and attuned print: the readers stay inside the bytes and end their texts.
 */
#include "cli/slurm_site.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    att_slurm_site_t site = {0};
    att_error_t error = {""};
    /* A copy of exactly these bytes: what reads further is found. */
    char *text = malloc(size > 0 ? size : 1);
    if (text == NULL)
        abort();
    memcpy(text, data, size);
    if (att_slurm_read_version(text, size, &site, &error) == 0) {
        if (site.major < 1 || site.minor < 0 || site.version[0] == '\0')
            abort();
    } else if (error.text[0] == '\0') {
        abort();
    }
    att_slurm_read_mpi_list(text, size, &site);
    att_slurm_read_config(text, size, &site);
    att_slurm_read_mpi(text, size, &site);
    if (memchr(site.version, '\0', sizeof site.version) == NULL ||
        memchr(site.mpi_text, '\0', sizeof site.mpi_text) == NULL || site.kill_wait_s < 0)
        abort();
    free(text);
    return 0;
}
