#include "cli/bench_record.h"

#include "base/log.h"
#include "base/one_line.h"
#include "cli/bench.h"
#include "cli/bench_convert.h"
#include "cli/bench_record_options.h"
#include "cli/bench_variant.h"
#include "search/knobs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* *made: it was not there. */
static int make_folder(const char *path, bool *made, att_error_t *error)
{
    struct stat status;
    *made = mkdir(path, 0777) == 0;
    if (*made || (errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode)))
        return ATT_OK;
    return att_fail_errno(error, "--out %s cannot be made", path);
}

static int record(att_record_options_t *options, att_bench_options_t *bench, int argc, char **argv,
                  att_error_t *error)
{
    bool made;
    int rc = make_folder(options->out, &made, error);
    if (rc != ATT_OK)
        return rc;
    if (options->from_sweep != NULL) {
        rc = att_bench_convert(options, error);
    } else {
        bench->record = options;
        if (options->thread_count > 0)
            att_bench_variants_allow();
        rc = -att_bench_run(bench, argc, argv);
        error->text[0] = '\0'; /* said where it was found */
    }
    if (rc != ATT_OK && made)
        (void)rmdir(options->out); /* when nothing is in it */
    return rc;
}

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
    } else {
        rc = record(options, bench, argc, argv, &error);
    }
    if (rc != ATT_OK && error.text[0] != '\0')
        att_log(ATT_LOG_ERROR, "%s", error.text);
    free(options);
    free(bench);
    return -rc;
}
