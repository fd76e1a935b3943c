#include "cli/slurm_site.h"

#include "cli/capture.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ANSWER_MS 10000

bool att_slurm_has_overlap(const att_slurm_site_t *site)
{
    return site->major > 20 || (site->major == 20 && site->minor >= 11);
}

bool att_slurm_overlap_is_mutual(const att_slurm_site_t *site)
{
    return att_slurm_has_overlap(site) &&
           (site->major < 22 || (site->major == 22 && site->minor < 5));
}

/* A number of at most four digits at `text`; its length, 0: none. */
static size_t number(const char *text, size_t length, int *value)
{
    size_t n = 0;
    *value = 0;
    while (n < length && n < 5 && isdigit((unsigned char)text[n]))
        *value = *value * 10 + (text[n++] - '0');
    return n <= 4 ? n : 0;
}

int att_slurm_read_version(const char *text, size_t length, att_slurm_site_t *site,
                           att_error_t *error)
{
    for (size_t i = 0; i < length; i++) {
        int major, minor;
        if (i > 0 && (isalnum((unsigned char)text[i - 1]) || text[i - 1] == '.'))
            continue;
        size_t n = number(text + i, length - i, &major);
        if (n == 0 || i + n >= length || text[i + n] != '.')
            continue;
        size_t m = number(text + i + n + 1, length - i - n - 1, &minor);
        if (m == 0 || major == 0)
            continue;
        site->major = major;
        site->minor = minor;
        size_t end = i + n + 1 + m;
        while (end < length && (isalnum((unsigned char)text[end]) || strchr(".-+", text[end])) &&
               text[end] != '\0')
            end++;
        snprintf(site->version, sizeof site->version, "%.*s", (int)(end - i), text + i);
        return ATT_OK;
    }
    int line = 0;
    while (line < 60 && (size_t)line < length && text[line] != '\n' && text[line] != '\0')
        line++;
    return att_fail(error, ATT_EINPUT, "'%.*s' is no version of Slurm such as 22.05.8", line, text);
}

/* Calls each(line) with every line. */
typedef void (*line_fn)(void *context, const char *line, size_t length);
static void each_line(const char *text, size_t length, line_fn each, void *context)
{
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t n = end != NULL ? (size_t)(end - text) : length;
        each(context, text, n);
        n += end != NULL;
        text += n;
        length -= n;
    }
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

/* The last word of each line; a sentence ("MPI types are...") has none of interest. */
static void mpi_line(void *context, const char *line, size_t length)
{
    att_slurm_site_t *site = context;
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        length--;
    size_t start = length;
    while (start > 0 && !isspace((unsigned char)line[start - 1]))
        start--;
    const char *word = line + start;
    size_t n = length - start;
    if (is_word(word, n, "pmix") || (n > 6 && memcmp(word, "pmix_v", 6) == 0))
        site->pmix = true;
    if (is_word(word, n, "pmi2"))
        site->pmi2 = true;
}

void att_slurm_read_mpi_list(const char *text, size_t length, att_slurm_site_t *site)
{
    each_line(text, length, mpi_line, site);
}

/* "Name   = value" */
static void config_line(void *context, const char *line, size_t length)
{
    att_slurm_site_t *site = context;
    const char *equals = memchr(line, '=', length);
    if (equals == NULL)
        return;
    size_t name = (size_t)(equals - line);
    while (name > 0 && isspace((unsigned char)line[name - 1]))
        name--;
    const char *value = equals + 1;
    size_t n = length - (size_t)(value - line);
    while (n > 0 && isspace((unsigned char)value[0])) {
        value++;
        n--;
    }
    while (n > 0 && isspace((unsigned char)value[n - 1]))
        n--;
    site->has_config = true;
    if (is_word(line, name, "KillWait"))
        number(value, n, &site->kill_wait_s);
    else if (is_word(line, name, "SlurmdTimeout"))
        number(value, n, &site->node_timeout_s);
    else if (is_word(line, name, "TaskPlugin"))
        site->no_binding = is_word(value, n, "task/none") || is_word(value, n, "(null)");
    else if (is_word(line, name, "PMIxCollFence"))
        site->ring = n >= 4 && strncasecmp(value, "ring", 4) == 0;
}

void att_slurm_read_config(const char *text, size_t length, att_slurm_site_t *site)
{
    each_line(text, length, config_line, site);
}

void att_slurm_read_mpi(const char *text, size_t length, att_slurm_site_t *site)
{
    const char *open = memchr(text, '(', length);
    const char *close = open != NULL ? memchr(open, ')', length - (size_t)(open - text)) : NULL;
    if (close == NULL)
        return;
    snprintf(site->mpi_text, sizeof site->mpi_text, "%.*s", (int)(close - open - 1), open + 1);
    if (strncmp(site->mpi_text, "Open MPI", 8) == 0)
        site->mpi = ATT_SLURM_MPI_OPEN;
    else if (strncmp(site->mpi_text, "MPICH", 5) == 0)
        site->mpi = ATT_SLURM_MPI_MPICH;
}

static void ask_attuned(const char *attuned, att_slurm_site_t *site)
{
    static att_capture_t capture;
    char program[4096], flag[] = "--version";
    snprintf(program, sizeof program, "%s", attuned);
    char *const argv[] = {program, flag, NULL};
    if (attuned[0] != '\0' && att_capture_run(&capture, argv, ANSWER_MS, NULL) == ATT_OK &&
        capture.exit_status == 0)
        att_slurm_read_mpi(capture.text, capture.length, site);
}

static int ask(att_capture_t *capture, const char *program, const char *first, const char *second,
               att_error_t *error)
{
    char words[3][32];
    snprintf(words[0], sizeof words[0], "%s", program);
    snprintf(words[1], sizeof words[1], "%s", first);
    snprintf(words[2], sizeof words[2], "%s", second != NULL ? second : "");
    char *const argv[] = {words[0], words[1], second != NULL ? words[2] : NULL, NULL};
    return att_capture_run(capture, argv, ANSWER_MS, error);
}

int att_slurm_site_find(const char *attuned, att_slurm_site_t *site, att_error_t *error)
{
    static att_capture_t capture;
    memset(site, 0, sizeof *site);
    int rc = ask(&capture, "srun", "--version", NULL, error);
    if (rc == -ATT_ENOENT)
        return att_fail(error, ATT_ENOENT,
                        "there is no srun in PATH; attune slurm --for 22.05 prints the lines for a "
                        "Slurm that is elsewhere, attune slurm one-node those without Slurm");
    if (rc == ATT_OK && capture.exit_status != 0)
        return att_fail(error, ATT_ESYSTEM, "srun --version fails with status %d: %.*s",
                        capture.exit_status, (int)strcspn(capture.text, "\n"), capture.text);
    if (rc == ATT_OK)
        rc = att_slurm_read_version(capture.text, capture.length, site, error);
    if (rc == ATT_OK)
        rc = ask(&capture, "srun", "--mpi=list", NULL, error);
    if (rc != ATT_OK)
        return rc;
    att_slurm_read_mpi_list(capture.text, capture.length, site);
    /* The controller may be out of reach from here: then nothing is known of its configuration. */
    if (ask(&capture, "scontrol", "show", "config", NULL) == ATT_OK && capture.exit_status == 0)
        att_slurm_read_config(capture.text, capture.length, site);
    ask_attuned(attuned, site);
    return ATT_OK;
}

void att_slurm_site_ask(const char *attuned, att_slurm_site_t *site)
{
    memset(site, 0, sizeof *site);
    ask_attuned(attuned, site);
}

int att_slurm_site_assume(const char *version, const char *attuned, att_slurm_site_t *site,
                          att_error_t *error)
{
    memset(site, 0, sizeof *site);
    if (att_slurm_read_version(version, strlen(version), site, NULL) != ATT_OK)
        return att_fail(error, ATT_EUSAGE,
                        "--for '%.40s': expected a version of Slurm such as 22.05.8", version);
    site->pmix = true;
    site->pmi2 = true;
    ask_attuned(attuned, site);
    return ATT_OK;
}
