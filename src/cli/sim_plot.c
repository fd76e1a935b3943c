#include "cli/sim_plot.h"

#include "base/names.h"
#include "sim/quantile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNKS    40     /* of a heat map */
#define GAP_LEAST 0.0001 /* drawn for smaller ones: the axis is logarithmic */

extern char **environ;

static bool is_there(const char *program)
{
    const char *path = getenv("PATH");
    char file[PATH_MAX];
    while (path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)length, path, program);
        if (access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

int att_sim_plot_prepare(const char *folder, att_error_t *error)
{
    if (!is_there("gnuplot"))
        return att_fail(
            error, ATT_ENOENT,
            "--plots needs gnuplot, which is not on PATH: install gnuplot-nox, or leave "
            "--plots out");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return att_fail_errno(error, "%s: cannot make the folder for plots", folder);
    if (access(folder, W_OK | X_OK) != 0)
        return att_fail_errno(error, "%s: cannot write plots", folder);
    return ATT_OK;
}

/* <folder>/<label>-<kind>, with what a file name should not have replaced. */
static void name_file(char path[PATH_MAX], const char *folder, const char *label, const char *kind)
{
    char name[256];
    snprintf(name, sizeof name, "%.120s-%.120s", label, kind);
    for (char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-')
            *c = '_';
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

/* What gnuplot says goes to `log`: one plot of many is worth one line on the screen. */
static int run_gnuplot(const char *script, const char *log, att_error_t *error)
{
    char program[] = "gnuplot";
    char *arguments[] = {program, (char *)(uintptr_t)script, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return att_fail(error, ATT_ESYSTEM, "cannot start gnuplot: %s", strerror(rc));
    rc = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log,
                                          O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (rc == 0)
        rc = posix_spawnp(&pid, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        return att_fail(error, ATT_ESYSTEM, "cannot start gnuplot: %s", strerror(rc));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return att_fail(error, ATT_EFAIL, "gnuplot failed on %.200s: %.200s has what it said",
                        script, log);
    return ATT_OK;
}

/* Open <base>.dat and <base>.gp, the latter with its first lines. */
static int open_both(const char *base, FILE **data, FILE **script, att_error_t *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.dat", base);
    FILE *dat = fopen(path, "we");
    if (dat == NULL)
        return att_fail_errno(error, "%s: cannot write", path);
    snprintf(path, sizeof path, "%s.gp", base);
    FILE *gp = fopen(path, "we");
    if (gp == NULL) {
        fclose(dat);
        return att_fail_errno(error, "%s: cannot write", path);
    }
    fprintf(gp,
            "set terminal svg size 900,600 dynamic background rgb 'white'\nset output '%s.svg'\n",
            base);
    *data = dat;
    *script = gp;
    return ATT_OK;
}

static int draw(const char *base, FILE *data, FILE *script, att_error_t *error)
{
    char path[PATH_MAX], log[PATH_MAX];
    snprintf(path, sizeof path, "%s.gp", base);
    snprintf(log, sizeof log, "%s.log", base);
    bool bad = ferror(data) != 0;
    bad |= fclose(data) != 0;
    bad |= ferror(script) != 0;
    bad |= fclose(script) != 0;
    if (bad)
        return att_fail_errno(error, "%s: cannot write", base);
    int rc = run_gnuplot(path, log, error);
    if (rc == ATT_OK) {
        unlink(path);
        unlink(log);
    }
    return rc;
}

/* ---- convergence ---- */

static void write_bands(FILE *data, const att_sim_contest_t *contest, uint32_t strategy,
                        double *gaps)
{
    static const double shares[] = {0.1, 0.5, 0.9};
    const att_sim_outcome_t *outcomes = att_sim_contest_outcomes(contest, strategy);
    for (uint32_t c = 0; c < contest->checkpoint_count; c++) {
        for (uint32_t i = 0; i < contest->seeds; i++)
            gaps[i] = outcomes[i].gaps[c] > GAP_LEAST ? outcomes[i].gaps[c] : GAP_LEAST;
        fprintf(data, "%llu", (unsigned long long)contest->checkpoints[c]);
        for (size_t q = 0; q < sizeof shares / sizeof shares[0]; q++)
            fprintf(data, " %.6g", 100 * att_quantile(gaps, contest->seeds, shares[q]));
        fputc('\n', data);
    }
}

int att_sim_plot_convergence(const char *folder, const char *label,
                             const att_sim_contest_config_t *config,
                             const att_sim_contest_t *contest, att_error_t *error)
{
    char base[PATH_MAX];
    FILE *data, *script;
    double *gaps = malloc(contest->seeds * sizeof *gaps);
    if (gaps == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for a plot");
    name_file(base, folder, label, "convergence");
    int rc = open_both(base, &data, &script, error);
    if (rc != ATT_OK) {
        free(gaps);
        return rc;
    }
    for (uint32_t s = 0; s < config->strategy_count; s++) {
        fprintf(data, "%s# %s: calls, gap in %%: 10 %%, median, 90 %% of the runs\n",
                s > 0 ? "\n\n" : "", config->strategies[s]);
        write_bands(data, contest, s, gaps);
    }
    free(gaps);
    fprintf(script,
            "set title '%s, %u seeds' noenhanced\nset xlabel 'calls'\n"
            "set ylabel 'over the optimum, %%'\nset logscale y\nset key outside below noenhanced\n"
            "set style fill transparent solid 0.15 noborder\nset xrange [1:%llu]\n",
            label, contest->seeds, (unsigned long long)contest->budget);
    if (contest->descent_stop > 0 && contest->descent_stop <= contest->budget)
        fprintf(script, "set arrow from %llu, graph 0 to %llu, graph 1 nohead dashtype 2\n",
                (unsigned long long)contest->descent_stop,
                (unsigned long long)contest->descent_stop);
    for (uint32_t s = 0; s < config->strategy_count; s++)
        fprintf(script,
                "%s '%s.dat' index %u using 1:2:4 with filledcurves linecolor %u notitle, \\\n",
                s == 0 ? "plot" : "    ", base, s, s + 1);
    for (uint32_t s = 0; s < config->strategy_count; s++)
        fprintf(script,
                "     '%s.dat' index %u using 1:3 with lines linecolor %u linewidth 2 title "
                "'%s'%s",
                base, s, s + 1, config->strategies[s],
                s + 1 < config->strategy_count ? ", \\\n" : "\n");
    return draw(base, data, script, error);
}

/* ---- heat map ---- */

static const att_subspace_t *find_subspace(const att_space_t *space, att_setting_t x)
{
    for (uint32_t i = 0; i < space->subspace_count; i++)
        if (att_subspace_contains(&space->subspaces[i], x))
            return &space->subspaces[i];
    return NULL;
}

/* The i-th of CHUNKS chunks on a log scale, on the grid. */
static uint32_t chunk_at(const att_subspace_t *s, int i)
{
    double x = s->chunk_min * pow((double)s->chunk_max / s->chunk_min, (double)i / (CHUNKS - 1));
    uint32_t step = s->chunk_step > 0 ? s->chunk_step : 1;
    uint32_t steps = (uint32_t)((x - s->chunk_min) / step + 0.5);
    return s->chunk_min + steps * step;
}

/* The chunks of the rows; a coarse grid has fewer than CHUNKS. */
static int list_chunks(const att_subspace_t *s, uint32_t chunks[CHUNKS])
{
    int count = 0;
    for (int i = 0; i < CHUNKS; i++) {
        uint32_t chunk = chunk_at(s, i);
        if (count == 0 || chunk > chunks[count - 1])
            chunks[count++] = chunk;
    }
    return count;
}

/* log2 of the border between rows i - 1 and i; the outer rows are as high outwards as inwards. */
static double border(const uint32_t chunks[CHUNKS], int count, int i)
{
    int low = i < 1 ? 0 : i >= count ? count - 2 : i - 1;
    double middle = (log2(chunks[low]) + log2(chunks[low + 1])) / 2;
    return i < 1        ? 2 * log2(chunks[0]) - middle
           : i >= count ? 2 * log2(chunks[count - 1]) - middle
                        : middle;
}

/* A rectangle for each cell that has a duration: the rows of a recording are not evenly spaced and
 * not every cell of them was measured, which an image does not allow. */
static void write_map(FILE *data, const struct att_sim_task *task, int load, att_setting_t x,
                      const att_subspace_t *s, double best_us)
{
    uint32_t chunks[CHUNKS], step = s->channels_step > 0 ? s->channels_step : 1, cells = 0;
    int rows = list_chunks(s, chunks);
    fprintf(data, "# channels, log2 of chunk in bytes, borders of the cell (channels, log2 of "
                  "chunk), %% over the optimum\n");
    for (int i = 0; rows > 1 && i < rows; i++) {
        for (uint32_t n = s->channels_min; n <= s->channels_max; n += step) {
            x.channels = (uint16_t)n;
            x.chunk_bytes = chunks[i];
            double us = att_sim_task_us(task, x, load);
            if (us <= 0 || !isfinite(us))
                continue;
            fprintf(data, "%u %.5f %g %g %.5f %.5f %.4f\n", n, log2(chunks[i]), n - step / 2.0,
                    n + step / 2.0, border(chunks, rows, i), border(chunks, rows, i + 1),
                    100 * (us / best_us - 1));
            cells++;
        }
    }
    if (cells == 0)
        fprintf(data, "nan nan nan nan nan nan nan\n"); /* keeps the place of the data below */
}

/* Where a setting is drawn; false when it is of another subspace. A kept chunk is drawn below. */
static bool place(const att_subspace_t *s, att_setting_t x, double *chunk)
{
    if (!att_subspace_contains(s, x))
        return false;
    *chunk = x.chunk_bytes > 0 ? log2(x.chunk_bytes) : log2(s->chunk_min) - 0.5;
    return true;
}

int att_sim_plot_path(const char *folder, const char *label, struct att_sim_task *task, int load,
                      const char *strategy, const att_sim_path_t *path, att_error_t *error)
{
    att_sim_optimum_t optimum;
    int rc = att_sim_task_optimum(task, load, &optimum, error);
    const att_subspace_t *s =
        rc == ATT_OK ? find_subspace(att_sim_task_space(task), optimum.setting) : NULL;
    if (s == NULL || s->chunk_max == 0 || s->chunk_min == s->chunk_max)
        return rc;
    char base[PATH_MAX], kind[160], pair[64];
    FILE *data, *script;
    snprintf(kind, sizeof kind, "path-%s", strategy);
    name_file(base, folder, label, kind);
    rc = open_both(base, &data, &script, error);
    if (rc != ATT_OK)
        return rc;
    write_map(data, task, load, optimum.setting, s, optimum.us);
    fprintf(data, "\n\n# settings tried in this subspace, in order: channels, log2 of chunk\n");
    double chunk;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < path->count; i++)
        if (place(s, path->settings[i], &chunk)) {
            fprintf(data, "%u %.5f\n", path->settings[i].channels, chunk);
            shown++;
        }
    fprintf(data, "\n\n# the optimum, then what the run ended with\n%u %.5f\n",
            optimum.setting.channels,
            optimum.setting.chunk_bytes > 0 ? log2(optimum.setting.chunk_bytes)
                                            : log2(s->chunk_min) - 0.5);
    bool settled = place(s, path->last, &chunk);
    if (settled)
        fprintf(data, "%u %.5f\n", path->last.channels, chunk);
    snprintf(pair, sizeof pair, "%s/%s", att_algorithm_name(s->algorithm),
             att_protocol_name(s->protocol));
    fprintf(script,
            "set title '%s, %s: %s, one run' noenhanced\nset xlabel 'channels'\n"
            "set ylabel 'chunk, bytes (below: kept)'\nset cblabel 'over the optimum, %%'\n"
            "set palette defined (0 '#1a6e3c', 0.15 '#ffffbf', 1 '#8c2d04')\nset cbrange [0:100]\n"
            "set ytics ('1K' 10, '4K' 12, '16K' 14, '64K' 16, '256K' 18, '1M' 20, '4M' 22)\n"
            "set key outside below\n"
            "plot '%s.dat' index 0 using 1:2:3:4:5:6:7 with boxxyerror fillstyle solid noborder "
            "linecolor palette notitle, \\\n",
            label, pair, strategy, base);
    if (shown > 0)
        fprintf(script, "    '' index 1 using 1:2 with linespoints linecolor 'black' pointtype 7 "
                        "pointsize 0.5 title 'tried', \\\n");
    fprintf(script,
            "    '' index 2 every ::0::0 using 1:2 with points pointtype 3 pointsize 2 linecolor "
            "'blue' linewidth 2 title 'optimum'%s\n",
            settled
                ? ", \\\n    '' index 2 every ::1::1 using 1:2 with points pointtype 6 pointsize 2 "
                  "linecolor 'red' linewidth 2 title 'settled on'"
                : "");
    return draw(base, data, script, error);
}
