#include "cli/job_folder.h"

#include "cli/json_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int choose_id(const char *run_id, att_job_folder_t *folder, att_error_t *error)
{
    if (run_id[0] != '\0') {
        for (const char *c = run_id; *c != '\0'; c++)
            if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL)
                return att_fail(error, ATT_EUSAGE,
                                "--run-id: '%.60s' is not accepted; expected letters, digits, "
                                "'.', '_' and '-'",
                                run_id);
        if (strlen(run_id) >= sizeof folder->run_id)
            return att_fail(error, ATT_EUSAGE, "--run-id: longer than %zu characters",
                            sizeof folder->run_id - 1);
        snprintf(folder->run_id, sizeof folder->run_id, "%s", run_id);
        return ATT_OK;
    }
    uint32_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return att_fail_errno(error, "getrandom");
    struct tm t;
    char date[32];
    localtime_r(&folder->started.tv_sec, &t);
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", &t);
    snprintf(folder->run_id, sizeof folder->run_id, "%s-%04x", date, random & 0xffff);
    return ATT_OK;
}

static int make_folders(char *path, att_error_t *error)
{
    for (char *slash = path + 1; slash != NULL;) {
        slash = strchr(slash, '/');
        if (slash != NULL)
            *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return att_fail_errno(error, "run folder %s cannot be made (--run-dir says where)",
                                  path);
        if (slash != NULL)
            *slash++ = '/';
    }
    return ATT_OK;
}

static int check_empty(const char *path, att_error_t *error)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return att_fail_errno(error, "run folder %s", path);
    struct dirent *entry;
    int entries = 0;
    while (entries == 0 && (entry = readdir(dir)) != NULL)
        entries += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    const char *outer = getenv("ATTUNE_RUN_DIR"), *id = getenv("ATTUNE_RUN_ID");
    if (entries > 0 && outer != NULL && id != NULL && strcmp(path, outer) == 0)
        return att_fail(error, ATT_EUSAGE,
                        "this is inside the run of %s, which tunes the command already: leave this "
                        "'attune run' out, or give it --run-dir and --run-id of its own",
                        path);
    if (entries > 0)
        return att_fail(
            error, ATT_EUSAGE,
            "run folder %s exists and is not empty; remove it or choose another --run-dir", path);
    return ATT_OK;
}

static int check_writable(const char *path, att_error_t *error)
{
    char probe[PATH_MAX + 16];
    snprintf(probe, sizeof probe, "%s/manifest.json", path);
    int fd = open(probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return att_fail_errno(error, "run folder %s cannot be written to", path);
    close(fd);
    return ATT_OK;
}

int att_job_folder_create(const char *path, const char *run_id, att_job_folder_t *folder,
                          att_error_t *error)
{
    char wanted[PATH_MAX];
    memset(folder, 0, sizeof *folder);
    clock_gettime(CLOCK_REALTIME, &folder->started);
    int rc = choose_id(run_id, folder, error);
    if (rc != ATT_OK)
        return rc;
    int length = path[0] != '\0' ? snprintf(wanted, sizeof wanted, "%s", path)
                                 : snprintf(wanted, sizeof wanted, "attune-%s", folder->run_id);
    if (length >= PATH_MAX - 64)
        return att_fail(error, ATT_EUSAGE, "--run-dir: the path is too long");
    while (length > 1 && wanted[length - 1] == '/')
        wanted[--length] = '\0';
    rc = make_folders(wanted, error);
    if (rc == ATT_OK)
        rc = check_empty(wanted, error);
    if (rc == ATT_OK)
        rc = check_writable(wanted, error);
    if (rc != ATT_OK)
        return rc;
    if (realpath(wanted, folder->path) == NULL)
        return att_fail_errno(error, "run folder %s", wanted);
    const char *slash = strrchr(folder->path, '/');
    snprintf(folder->name, sizeof folder->name, "%s", slash[1] != '\0' ? slash + 1 : "/");
    return ATT_OK;
}

const char *att_job_folder_file(const att_job_folder_t *folder, const char *file, char *text)
{
    snprintf(text, PATH_MAX, "%.4000s/%.80s", folder->path, file);
    return text;
}

static const char *time_text(time_t seconds, char *text, size_t size)
{
    struct tm t;
    gmtime_r(&seconds, &t);
    strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &t);
    return text;
}

const char *att_job_folder_when(const att_job_folder_t *folder, char *text, size_t size)
{
    return time_text(folder->started.tv_sec, text, size);
}

static json_t *words_json(char *const *words)
{
    json_t *list = json_array();
    for (; words != NULL && *words != NULL; words++)
        json_array_append_new(list, att_json_text(*words));
    return list;
}

static json_t *environment_json(char *const *environment)
{
    json_t *object = json_object();
    for (; environment != NULL && *environment != NULL; environment++) {
        const char *entry = *environment, *equals = strchr(entry, '=');
        if (equals == NULL ||
            (strncmp(entry, "NCCL_", 5) != 0 && strncmp(entry, "ATTUNE_", 7) != 0))
            continue;
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(equals - entry), entry);
        json_object_set_new(object, name, att_json_text(equals + 1));
    }
    return object;
}

static json_t *options_json(const att_config_t *config)
{
    json_t *object = json_object();
    char text[2 * PATH_MAX];
    for (size_t i = 0; i < att_option_row_count; i++)
        if ((att_option_rows[i].programs & ATT_FOR_RUN) != 0)
            json_object_set_new(
                object, att_option_rows[i].flag,
                att_json_text(att_config_text(config, &att_option_rows[i], text, sizeof text)));
    return object;
}

int att_job_folder_manifest(const att_job_folder_t *folder, const att_manifest_t *m,
                            att_error_t *error)
{
    char path[PATH_MAX], started[32], ended[32], host[256] = "", cwd[PATH_MAX] = "";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool over = m->exit_status >= 0;
    double duration = (double)(now.tv_sec - folder->started.tv_sec) +
                      (double)(now.tv_nsec - folder->started.tv_nsec) * 1e-9;
    gethostname(host, sizeof host - 1);
    if (getcwd(cwd, sizeof cwd) == NULL)
        cwd[0] = '\0';
    json_t *root =
        json_pack("{s:i,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:s,s:s?,s:o,s:o,s:o,s:{s:o,s:s?}}", "version",
                  ATT_MANIFEST_VERSION, "attune", ATTUNE_VERSION, "run_id", folder->run_id, "host",
                  att_json_text(host), "directory", att_json_text(cwd), "argv", words_json(m->argv),
                  "command", words_json(m->command), "options", options_json(m->config), "started",
                  att_job_folder_when(folder, started, sizeof started), "ended",
                  over ? time_text(now.tv_sec, ended, sizeof ended) : NULL, "duration_s",
                  over ? json_real(duration) : json_null(), "exit_status",
                  over ? json_integer(m->exit_status) : json_null(), "environment",
                  environment_json(m->environment), "sidecar", "program", att_json_text(m->sidecar),
                  "end", m->sidecar_end);
    return att_json_replace(att_job_folder_file(folder, "manifest.json", path), root, error);
}
