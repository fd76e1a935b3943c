#include "cli/top.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/nearest.h"
#include "cli/tasks_file.h"
#include "cli/top_screen.h"
#include "cli/top_view.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct top {
    const char *word; /* RUN as given, NULL: look for it */
    double interval_s, patience_s;
    bool lines, once;
    char folder[PATH_MAX];
    char file[PATH_MAX + 16];
    att_tasks_t tasks;
    bool has_tasks;
    struct timespec changed; /* of the file that was read */
    att_top_view_t view;
} top_t;

static void print_help(void)
{
    printf(
        "Usage: attune top [options] [RUN]\n\n"
        "Watch a run: each group and task with its bus bandwidth now, with NCCL's own choice and\n"
        "with the best setting, trials, coverage, and the rank that keeps arriving last.\n\n"
        "RUN is a run folder or a run id whose folder is here; without it: ATTUNE_RUN_DIR, or the\n"
        "latest attune-* folder here.\n\n"
        "  --interval SECONDS  between two looks (default 1; the sidecar reports once a second)\n"
        "  --lines             a line for each task that changed, as when standard output is no\n"
        "                      terminal, until the run has finished\n"
        "  --patience SECONDS  with lines: end when nothing was reported for so long (default 60)\n"
        "  --once              the table as it is now, and end\n\n"
        "Keys: q leaves; arrows, j, k, PgUp, PgDn, g, G move. (Numbers in parentheses are older\n"
        "than 15 s.)\n");
}

/* --- which run -------------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static int latest(char *folder, att_error_t *error)
{
    glob_t found;
    struct timespec newest = {0, 0};
    folder[0] = '\0';
    if (glob("attune-*", GLOB_ONLYDIR, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            char file[PATH_MAX + 16];
            struct stat s;
            snprintf(file, sizeof file, "%.*s/manifest.json", PATH_MAX - 1, found.gl_pathv[i]);
            if (stat(file, &s) != 0)
                continue;
            if (s.st_mtim.tv_sec > newest.tv_sec ||
                (s.st_mtim.tv_sec == newest.tv_sec && s.st_mtim.tv_nsec > newest.tv_nsec)) {
                newest = s.st_mtim;
                snprintf(folder, PATH_MAX, "%s", found.gl_pathv[i]);
            }
        }
        globfree(&found);
    }
    return folder[0] != '\0' ? ATT_OK
                             : att_fail(error, ATT_ENOENT,
                                        "no run folder attune-* is here: name the run's folder");
}

/* Of nobody yet, or of a run. */
static int check_run(const char *folder, att_error_t *error)
{
    static const char *const files[] = {"tasks.json", "manifest.json", "attuned.log",
                                        "trials.jsonl"};
    char file[PATH_MAX + 16];
    bool empty = true;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(file, sizeof file, "%s/%s", folder, files[i]);
        if (access(file, F_OK) == 0)
            return ATT_OK;
    }
    DIR *entries = opendir(folder);
    for (const struct dirent *e; entries != NULL && (e = readdir(entries)) != NULL;)
        empty &= strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (entries != NULL)
        closedir(entries);
    return empty ? ATT_OK
                 : att_fail(error, ATT_ENOENT, "%s: no file of a run in it, but others", folder);
}

static int find_run(top_t *top, att_error_t *error)
{
    const char *word = top->word;
    if (word == NULL)
        word = getenv("ATTUNE_RUN_DIR");
    if (word == NULL || word[0] == '\0')
        return latest(top->folder, error);
    snprintf(top->folder, sizeof top->folder, "%s", word);
    if (is_folder(top->folder))
        return check_run(top->folder, error);
    if (strchr(word, '/') == NULL)
        snprintf(top->folder, sizeof top->folder, "attune-%s", word);
    return is_folder(top->folder) ? ATT_OK
                                  : att_fail(error, ATT_ENOENT,
                                             "no run '%.200s': neither this nor attune-%.200s is a "
                                             "folder here",
                                             word, word);
}

/* --- looking ---------------------------------------------------------------------------------- */

/* Read tasks.json when it is another one than before. A file that is not there yet is none. */
static int look(top_t *top, att_error_t *error)
{
    struct stat s;
    att_run_end_look(top->folder, &top->view.end);
    if (stat(top->file, &s) != 0) {
        if (errno != ENOENT || top->has_tasks || !is_folder(top->folder))
            return att_fail_errno(error, "%s", top->file);
        return ATT_OK;
    }
    if (top->has_tasks && s.st_mtim.tv_sec == top->changed.tv_sec &&
        s.st_mtim.tv_nsec == top->changed.tv_nsec)
        return ATT_OK;
    att_tasks_t tasks;
    int status = att_tasks_read(top->file, &tasks, error);
    if (status != ATT_OK)
        return status;
    att_tasks_free(&top->tasks);
    top->tasks = tasks;
    top->has_tasks = true;
    top->changed = s.st_mtim;
    top->view.tasks = &top->tasks;
    return ATT_OK;
}

static int show_once(top_t *top, att_error_t *error)
{
    int status = look(top, error);
    if (status == ATT_OK)
        att_top_screen(&top->view, INT_MAX, 200, 0, "\n", stdout);
    return status;
}

/* A line a change until the run has finished. */
static int follow(top_t *top, att_error_t *error)
{
    att_top_seen_t *seen = NULL;
    size_t count = 0;
    uint64_t began_ns = att_clock_ns();
    bool told = false;
    int status;
    for (;;) {
        status = look(top, error);
        if (status == ATT_OK && top->has_tasks &&
            att_top_lines(&top->view, &seen, &count, stdout) != ATT_OK)
            status = att_fail(error, ATT_ENOMEM, "no memory");
        if (status != ATT_OK)
            break;
        if (!top->has_tasks && !told)
            told = printf("waiting for the sidecar's first report in %s\n", top->file) > 0;
        if (top->has_tasks && top->tasks.finished)
            printf("%.1f s: finished\n", top->tasks.cost.run_us * 1e-6);
        if (fflush(stdout) != 0)
            status = att_fail_errno(error, "standard output");
        bool ended = top->view.end.sidecar[0] != '\0';
        double silent_s = top->has_tasks ? top->view.end.report_age_s
                                         : (double)(att_clock_ns() - began_ns) * 1e-9;
        if (status == ATT_OK && ended && !top->tasks.finished)
            status = att_fail(error, ATT_ESTALE, "%s: not finished: the sidecar is gone (%s)",
                              top->file, top->view.end.sidecar);
        else if (status == ATT_OK && silent_s > top->patience_s && !top->tasks.finished)
            status = att_fail(error, ATT_ESTALE,
                              "%s: no report for %.0f s: the sidecar is gone or stopped", top->file,
                              silent_s);
        if (status != ATT_OK || top->tasks.finished)
            break;
        att_clock_sleep_ns((uint64_t)(top->interval_s * 1e9));
    }
    free(seen);
    return status;
}

static size_t moved(att_top_key_t key, size_t first, size_t page, size_t count)
{
    size_t last = count > page ? count - page : 0;
    switch (key) {
    case ATT_TOP_UP:
        return first > 0 ? first - 1 : 0;
    case ATT_TOP_DOWN:
        return first < last ? first + 1 : last;
    case ATT_TOP_PAGE_UP:
        return first > page ? first - page : 0;
    case ATT_TOP_PAGE_DOWN:
        return first + page < last ? first + page : last;
    case ATT_TOP_HOME:
        return 0;
    case ATT_TOP_END:
        return last;
    default:
        return first < last ? first : last;
    }
}

static int watch(top_t *top, att_error_t *error)
{
    size_t first = 0;
    int status = att_top_screen_open(error);
    while (status == ATT_OK) {
        int rows, columns;
        char *text = NULL;
        size_t length = 0;
        status = look(top, error);
        FILE *out = status == ATT_OK ? open_memstream(&text, &length) : NULL;
        if (out == NULL)
            break;
        att_top_screen_size(&rows, &columns);
        /* The last row stays free: a line end there would scroll. */
        size_t count = att_top_screen(&top->view, rows - 1, columns, first, "\033[K\r\n", out);
        if (fclose(out) == 0)
            att_top_screen_show(text, length);
        free(text);
        att_top_key_t key = att_top_screen_key((int)(top->interval_s * 1000));
        if (key == ATT_TOP_QUIT)
            break;
        first = moved(key, first, rows > 7 ? (size_t)rows - 6 : 1, count);
    }
    att_top_screen_close();
    return status;
}

static int parse_seconds(const char *flag, const char *text, double *value, att_error_t *error)
{
    char *end = NULL;
    double number = text != NULL ? strtod(text, &end) : 0;
    if (text == NULL || end == text || *end != '\0' || !isfinite(number) || number < 0.05 ||
        number > 86400)
        return att_fail(error, ATT_EUSAGE, "%s: expected seconds from 0.05 to 86400", flag);
    *value = number;
    return ATT_OK;
}

static int parse(top_t *top, int argc, char **argv, att_error_t *error)
{
    static const char *const words[] = {"--lines",    "--once", "--interval",
                                        "--patience", "--help", NULL};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        int status = ATT_OK;
        att_nearest_t nearest;
        if (strcmp(word, "--lines") == 0)
            top->lines = true;
        else if (strcmp(word, "--once") == 0)
            top->once = true;
        else if (strcmp(word, "--interval") == 0)
            status = parse_seconds(word, i + 1 < argc ? argv[++i] : NULL, &top->interval_s, error);
        else if (strcmp(word, "--patience") == 0)
            status = parse_seconds(word, i + 1 < argc ? argv[++i] : NULL, &top->patience_s, error);
        else if (word[0] == '-')
            status = att_fail(error, ATT_EUSAGE, "no option %.80s%s; attune top --help lists them",
                              word, att_nearest_of(&nearest, word, words));
        else if (top->word != NULL)
            status =
                att_fail(error, ATT_EUSAGE, "one run at a time: %.80s and %.80s", top->word, word);
        else
            top->word = word;
        if (status != ATT_OK)
            return status;
    }
    return ATT_OK;
}

int att_top_main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
    top_t *top = calloc(1, sizeof *top);
    att_error_t error = {""};
    if (top == NULL)
        return ATT_ENOMEM;
    top->interval_s = 1;
    top->patience_s = 60;
    int status = parse(top, argc, argv, &error);
    if (status == ATT_OK)
        status = find_run(top, &error);
    if (status == ATT_OK) {
        const char *slash = strrchr(top->folder, '/');
        top->view.name = slash != NULL && slash[1] != '\0' ? slash + 1 : top->folder;
        snprintf(top->file, sizeof top->file, "%s/tasks.json", top->folder);
        if (top->once)
            status = show_once(top, &error);
        else if (top->lines || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
            status = follow(top, &error);
        else
            status = watch(top, &error);
    }
    if (status != ATT_OK)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    att_tasks_free(&top->tasks);
    free(top);
    return status != ATT_OK               ? -status
           : att_top_screen_signal() != 0 ? 128 + att_top_screen_signal()
                                          : 0;
}
