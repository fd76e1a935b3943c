#include "base/visibility.h"

#include "base/descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Parts of "attune-<uid>-<rest>"; rest is the run id, with "-<node>" behind it where there is one.
 */
typedef struct part {
    unsigned user;
    char rest[128];
} part_t;

static bool split(const char *name, part_t *part)
{
    int used = 0;
    return sscanf(name, "attune-%u-%n", &part->user, &used) == 1 && used > 0 &&
           name[used] != '\0' &&
           snprintf(part->rest, sizeof part->rest, "%s", name + used) < (int)sizeof part->rest;
}

/* Some process holds the agent's byte (base/segment.c, LOCK_AGENT). */
static bool served(int folder, const char *name)
{
    int fd = att_descriptor_keep(openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (fd < 0)
        return false;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return held;
}

/* One is the other with "-<node>" behind it, or both have the run in common up to a '-'. */
static bool same_run(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] != '\0' && a[n] == b[n])
        n++;
    return (a[n] == '\0' || a[n] == '-') && (b[n] == '\0' || b[n] == '-') && n > 0;
}

const char *att_visibility_container(void)
{
    static const struct {
        const char *variable, *file, *name;
    } signs[] = {{"APPTAINER_CONTAINER", "/.singularity.d", "Apptainer"},
                 {"SINGULARITY_CONTAINER", NULL, "Singularity"},
                 {NULL, "/.dockerenv", "Docker"},
                 {NULL, "/run/.containerenv", "Podman"},
                 {"ENROOT_ROOTFS", "/etc/enroot", "Enroot"},
                 {"KUBERNETES_SERVICE_HOST", NULL, "Kubernetes"},
                 {"container", NULL, "a container"}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if ((signs[i].variable != NULL && getenv(signs[i].variable) != NULL) ||
            (signs[i].file != NULL && access(signs[i].file, F_OK) == 0))
            return signs[i].name;
    return "";
}

static void nothing_there(const char *folder, char *text, size_t size)
{
    char namespace[64] = "";
    ssize_t n = readlink("/proc/self/ns/mnt", namespace, sizeof namespace - 1);
    namespace[n > 0 ? n : 0] = '\0';
    const char *container = att_visibility_container();
    snprintf(
        text, size,
        "no sidecar of this run is in %s as this process sees it: it has not started, or it is "
        "in another mount namespace or container (this one: %s%s%s); ATTUNE_SHM_DIR=DIR on both "
        "sides names a folder that both see",
        folder, namespace, container[0] != '\0' ? ", " : "", container);
}

void att_visibility_text(const char *path, char *text, size_t size)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    part_t own, other;
    const char *name = path;
    if (slash != NULL) {
        *slash = '\0';
        name = path + (slash - folder) + 1;
    }
    nothing_there(folder, text, size);
    DIR *dir = slash != NULL && split(name, &own) ? opendir(folder) : NULL;
    if (dir == NULL)
        return;
    bool node = false, user = false;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL && !user && !node;) {
        if (strcmp(entry->d_name, name) == 0 || !split(entry->d_name, &other))
            continue;
        if (other.user != own.user) {
            if (!same_run(own.rest, other.rest))
                continue;
            user = true;
            snprintf(
                text, size,
                "%s/%s is there, of user %u, but this process runs as user %u: sidecar and job "
                "must have one user, in containers too",
                folder, entry->d_name, other.user, own.user);
        } else if (served(dirfd(dir), entry->d_name)) {
            node = same_run(own.rest, other.rest);
            snprintf(text, size,
                     "the sidecar here serves %s/%s, and this process wants %s: %s differ", folder,
                     entry->d_name, name,
                     node ? "the node names (ATTUNE_NODE)"
                          : "the run ids (ATTUNE_RUN_ID, else SLURM_JOB_ID)");
        }
    }
    closedir(dir);
}
