#include "cli/bench_record.h"

#include "base/log.h"
#include "base/one_line.h"
#include "cli/bench.h"
#include "cli/bench_convert.h"
#include "cli/bench_record_options.h"
#include "cli/bench_variant.h"
#include "search/knobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int att_record_main(int argc, char **argv)
{
    att_record_options_t *options = malloc(sizeof *options);
    att_bench_options_t *bench = malloc(sizeof *bench);
    att_error_t error = {""};
    char line[ATT_ONE_LINE];
    int rc = ATT_OK;
    if (options == NULL || bench == NULL) {
        free(options);
        free(bench);
        return ATT_ENOMEM;
    }
    rc = att_record_options_parse(options, bench, argc, argv, &error);
    if (rc != ATT_OK && error.text[0] == '\0') {
        att_record_options_help(stdout);
        rc = ATT_OK;
    } else if (rc != ATT_OK) {
        fprintf(stderr, "%s\n", att_one_line(error.text, line, sizeof line));
        error.text[0] = '\0';
    } else if (att_knobs_get(&error) == NULL) {
        rc = -ATT_ENOENT;
    } else if (mkdir(options->out, 0777) != 0 && errno != EEXIST) {
        rc = att_fail_errno(&error, "--out %s cannot be made", options->out);
    } else if (rc == ATT_OK && options->from_sweep != NULL) {
        rc = att_bench_convert(options, &error);
    } else if (rc == ATT_OK) {
        bench->record = options;
        if (options->thread_count > 0)
            att_bench_variants_allow();
        rc = -att_bench_run(bench, argc, argv);
        error.text[0] = '\0'; /* said where it was found */
    }
    if (rc != ATT_OK && error.text[0] != '\0')
        att_log(ATT_LOG_ERROR, "%s", error.text);
    free(options);
    free(bench);
    return -rc;
}
