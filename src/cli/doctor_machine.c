/* What NCCL's tuning guide asks of a machine (NVIDIA, NCCL user guide, troubleshooting and env). */
#include "base/pins.h"
#include "base/protocol.h"
#include "cli/doctor.h"

#include <dlfcn.h>
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SOCKETS_MOST   64 /* MAX_SOCKETS of src/transport/net_socket.cc */
#define SOCKET_THREADS 16 /* MAX_THREADS there */
#define PORTS_LEAST    8192
#define DOCTOR_LIST    400

static int count_matches(const att_doctor_t *d, const char *pattern, glob_t *found)
{
    char whole[2 * PATH_MAX];
    snprintf(whole, sizeof whole, "%s%s", d->root, pattern);
    memset(found, 0, sizeof *found);
    return glob(whole, 0, NULL, found) == 0 ? (int)found->gl_pathc : 0;
}

static bool line_of(const char *path, char *line, size_t size)
{
    const att_doctor_t here = {.root = ""};
    return att_doctor_line(&here, path, line, size);
}

/* Returns the ports that are up. */
static int check_rdma(att_doctor_t *d)
{
    glob_t ports;
    int count = count_matches(d, "/sys/class/infiniband/*/ports/*/state", &ports), active = 0;
    for (int i = 0; i < count; i++) {
        char line[64];
        active += line_of(ports.gl_pathv[i], line, sizeof line) && strstr(line, "ACTIVE") != NULL;
    }
    globfree(&ports);
    const char *disable = att_doctor_variable(d, "NCCL_IB_DISABLE");
    const char *net = att_doctor_variable(d, "NCCL_NET");
    void *verbs = d->root[0] == '\0' && active > 0 ? dlopen("libibverbs.so.1", RTLD_LAZY) : NULL;
    if (count == 0)
        att_doctor_add(d, "rdma", ATT_CHECK_SKIP, NULL,
                       "no RDMA device: between nodes NCCL uses sockets");
    else if (active == 0)
        att_doctor_add(d, "rdma", ATT_CHECK_WARN,
                       "bring a port up (ibstat), or NCCL silently uses sockets between nodes",
                       "%d RDMA ports, none of them active", count);
    else if (disable != NULL && strcmp(disable, "0") != 0)
        att_doctor_add(d, "rdma", ATT_CHECK_WARN, "unset NCCL_IB_DISABLE",
                       "%d active RDMA ports, but NCCL_IB_DISABLE=%.20s: sockets between nodes",
                       active, disable);
    else if (net != NULL && strcasecmp(net, "Socket") == 0)
        att_doctor_add(d, "rdma", ATT_CHECK_WARN, "unset NCCL_NET",
                       "%d active RDMA ports, but NCCL_NET=%.20s: sockets between nodes", active,
                       net);
    else if (d->root[0] == '\0' && verbs == NULL)
        att_doctor_add(
            d, "rdma", ATT_CHECK_FAIL, "install libibverbs.so.1 (rdma-core), in the container too",
            "%d active RDMA ports, but no libibverbs.so.1: NCCL silently uses sockets", active);
    else
        att_doctor_add(d, "rdma", ATT_CHECK_PASS, NULL, "%d active RDMA ports", active);
    return active;
}

static void check_sockets(att_doctor_t *d)
{
    const char *threads_text = att_doctor_variable(d, "NCCL_SOCKET_NTHREADS");
    const char *sockets_text = att_doctor_variable(d, "NCCL_NSOCKS_PERTHREAD");
    if (threads_text == NULL && sockets_text == NULL) {
        att_doctor_add(d, "sockets", ATT_CHECK_PASS, NULL, "NCCL chooses threads and sockets");
        return;
    }
    long threads = threads_text != NULL ? strtol(threads_text, NULL, 10) : 1;
    long sockets = sockets_text != NULL ? strtol(sockets_text, NULL, 10) : 1;
    bool good = threads >= 1 && sockets >= 1 && threads <= SOCKET_THREADS &&
                sockets <= SOCKETS_MOST && threads * sockets <= SOCKETS_MOST;
    att_doctor_add(d, "sockets", good ? ATT_CHECK_PASS : ATT_CHECK_FAIL,
                   good ? NULL
                        : "at most 16 threads, and threads times sockets at most 64: NCCL lowers "
                          "what is above",
                   "NCCL_SOCKET_NTHREADS=%s, NCCL_NSOCKS_PERTHREAD=%s",
                   threads_text != NULL ? threads_text : "(unset)",
                   sockets_text != NULL ? sockets_text : "(unset)");
}

static void check_ports(att_doctor_t *d)
{
    char line[64];
    int from = 0, to = 0;
    if (!att_doctor_line(d, "/proc/sys/net/ipv4/ip_local_port_range", line, sizeof line) ||
        sscanf(line, "%d %d", &from, &to) != 2) {
        att_doctor_add(d, "ports", ATT_CHECK_SKIP, NULL, "the range of local ports is not known");
        return;
    }
    bool narrow = to - from + 1 < PORTS_LEAST;
    att_doctor_add(d, "ports", narrow ? ATT_CHECK_WARN : ATT_CHECK_PASS,
                   narrow ? "each connection of NCCL takes one: widen "
                            "net.ipv4.ip_local_port_range, or large jobs fail to connect"
                          : NULL,
                   "%d local ports (%d to %d)", to - from + 1, from, to);
}

static bool module_loaded(const att_doctor_t *d, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/module/%s", d->root, name);
    return access(path, F_OK) == 0;
}

static void check_gpu_direct(att_doctor_t *d, int rdma_ports)
{
    char line[256];
    if (!att_doctor_line(d, "/proc/driver/nvidia/version", line, sizeof line)) {
        att_doctor_add(d, "gpu-direct", ATT_CHECK_SKIP, NULL, "no NVIDIA driver is loaded");
        return;
    }
    bool peermem = module_loaded(d, "nvidia_peermem") || module_loaded(d, "nv_peer_mem");
    /* dma-buf needs the open kernel modules (NCCL user guide, GPU Direct RDMA). */
    bool open = strstr(line, "Open Kernel Module") != NULL;
    if (rdma_ports == 0)
        att_doctor_add(d, "gpu-direct", ATT_CHECK_SKIP, NULL, "no active RDMA port to use it");
    else if (peermem || open)
        att_doctor_add(d, "gpu-direct", ATT_CHECK_PASS, NULL, "%s",
                       peermem ? "nvidia_peermem is loaded" : "open kernel modules: dma-buf");
    else
        att_doctor_add(d, "gpu-direct", ATT_CHECK_WARN,
                       "modprobe nvidia_peermem, or use the open kernel modules (dma-buf)",
                       "no GPU direct RDMA: data goes through host memory");
}

/* NCCL_SOCKET_IFNAME: comma-separated prefixes, "=" before for whole names, "^" to leave out
 * (src/misc/socket.cc ncclFindInterfaces). */
static bool listed(const char *list, const char *name)
{
    bool exact = *list == '=';
    for (const char *word = exact ? list + 1 : list; *word != '\0';) {
        size_t length = strcspn(word, ",");
        const char *colon = memchr(word, ':', length); /* a port may follow */
        size_t used = colon != NULL ? (size_t)(colon - word) : length;
        if (used > 0 && strncmp(name, word, used) == 0 && (!exact || name[used] == '\0'))
            return true;
        word += length + (word[length] == ',');
    }
    return false;
}

static bool usable(const char *path)
{
    char file[PATH_MAX + 16], line[32] = "";
    snprintf(file, sizeof file, "%s/operstate", path);
    return line_of(file, line, sizeof line) &&
           (strcmp(line, "up") == 0 || strcmp(line, "unknown") == 0);
}

static void check_interface(att_doctor_t *d)
{
    static const char *const bridges[] = {"docker", "virbr", "veth", "br-", "cni"};
    const char *asked = att_doctor_variable(d, "NCCL_SOCKET_IFNAME");
    bool except = asked != NULL && asked[0] == '^';
    char list[DOCTOR_LIST] = "";
    int real = 0, infiniband = 0, bridge_count = 0, matches = 0;
    glob_t found;
    int count = count_matches(d, "/sys/class/net/*", &found);
    for (int i = 0; i < count; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        bool bridge = false;
        for (size_t b = 0; b < sizeof bridges / sizeof *bridges; b++)
            bridge |= strncmp(name, bridges[b], strlen(bridges[b])) == 0;
        if (!usable(found.gl_pathv[i]))
            continue;
        if (asked != NULL)
            matches += listed(except ? asked + 1 : asked, name) != except;
        if (strcmp(name, "lo") == 0)
            continue;
        bridge_count += bridge;
        infiniband += !bridge && strncmp(name, "ib", 2) == 0;
        real += !bridge;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? " " : "", name);
    }
    globfree(&found);
    if (asked != NULL && matches == 0)
        att_doctor_add(d, "interface", ATT_CHECK_FAIL,
                       "name one that is there on every node: NCCL fails without",
                       "NCCL_SOCKET_IFNAME=%.80s fits none of: %s", asked, list);
    else if (asked != NULL)
        att_doctor_add(d, "interface", ATT_CHECK_PASS, NULL, "NCCL_SOCKET_IFNAME=%.80s (%d)", asked,
                       matches);
    else if (real == 0)
        att_doctor_add(d, "interface", bridge_count > 0 ? ATT_CHECK_WARN : ATT_CHECK_SKIP,
                       bridge_count > 0
                           ? "NCCL may bind to a bridge that other nodes do not reach: "
                             "set NCCL_SOCKET_IFNAME"
                           : NULL,
                       "no network interface but %s", list[0] != '\0' ? list : "lo");
    else if (real - infiniband > 1 && infiniband == 0)
        att_doctor_add(d, "interface", ATT_CHECK_WARN,
                       "NCCL takes the first ones, perhaps not the fast one: set "
                       "NCCL_SOCKET_IFNAME alike on all nodes",
                       "several interfaces: %s", list);
    else
        att_doctor_add(d, "interface", ATT_CHECK_PASS, NULL, "%s", list);
}

/* "0-3,8" into a set; false when malformed. */
static bool read_cpus(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    while (*text != '\0') {
        char *end;
        long from = strtol(text, &end, 10), to = from;
        if (end == text)
            return false;
        if (*end == '-') {
            text = end + 1;
            to = strtol(text, &end, 10);
            if (end == text)
                return false;
        }
        for (long cpu = from; cpu >= 0 && cpu <= to && cpu < CPU_SETSIZE; cpu++)
            CPU_SET((size_t)cpu, set);
        text = end + (*end == ',');
        if (*end != ',' && *end != '\0')
            return false;
    }
    return true;
}

static bool is_nvidia_gpu(const char *folder)
{
    char path[PATH_MAX + 16], vendor[16] = "", kind[16] = "";
    snprintf(path, sizeof path, "%s/vendor", folder);
    line_of(path, vendor, sizeof vendor);
    snprintf(path, sizeof path, "%s/class", folder);
    line_of(path, kind, sizeof kind);
    return strcmp(vendor, "0x10de") == 0 && strncmp(kind, "0x03", 4) == 0;
}

static void check_affinity(att_doctor_t *d)
{
    cpu_set_t allowed, near, both;
    char line[1024];
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    int gpus = 0, far = 0;
    glob_t found;
    int count = count_matches(d, "/sys/bus/pci/devices/*", &found);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX + 32];
        snprintf(path, sizeof path, "%s/local_cpulist", found.gl_pathv[i]);
        if (!is_nvidia_gpu(found.gl_pathv[i]) || !line_of(path, line, sizeof line) ||
            !read_cpus(line, &near))
            continue;
        CPU_AND(&both, &allowed, &near);
        gpus++;
        far += CPU_COUNT(&both) == 0;
    }
    globfree(&found);
    int cpus = CPU_COUNT(&allowed);
    if (cpus == 1)
        att_doctor_add(d, "affinity", ATT_CHECK_WARN,
                       "give each process at least 4 (srun -c, mpirun --bind-to): NCCL's proxy "
                       "threads share them",
                       "only one processor may be used");
    else if (far > 0)
        att_doctor_add(d, "affinity", far == gpus ? ATT_CHECK_WARN : ATT_CHECK_PASS,
                       far == gpus ? "bind to processors near the GPU, or set "
                                     "NCCL_IGNORE_CPU_AFFINITY=1"
                                   : NULL,
                       "%d processors; %d of %d GPUs are near others", cpus, far, gpus);
    else
        att_doctor_add(d, "affinity", ATT_CHECK_PASS, NULL, "%d processors, near %d GPUs", cpus,
                       gpus);
}

/* What NCCL makes there at the first timed call (hook/stamps.h). */
static void check_timing_room(att_doctor_t *d)
{
    glob_t found;
    int gpus = count_matches(d, "/proc/driver/nvidia/gpus/*", &found);
    globfree(&found);
    char path[PATH_MAX];
    struct statvfs room;
    snprintf(path, sizeof path, "%s/dev/shm", d->root);
    if (gpus == 0) {
        att_doctor_add(d, "timing-room", ATT_CHECK_SKIP, NULL, "no NVIDIA GPU");
        return;
    }
    double left =
        statvfs(path, &room) == 0 ? (double)room.f_bavail * (double)room.f_frsize / (1 << 20) : 0;
    double need = gpus * (double)ATT_STAMPS_POOL / (1 << 20);
    att_doctor_add(
        d, "timing-room", left < need ? ATT_CHECK_WARN : ATT_CHECK_PASS,
        left < need ? "docker run --shm-size or --ipc=host: without room nothing is tuned" : NULL,
        "timing takes %.0f MiB of /dev/shm for each communicator of %d GPUs; %.0f MiB are left",
        need, gpus, left);
}

static void check_broadcast(att_doctor_t *d)
{
    const char *value = att_doctor_variable(d, "NCCL_ALLGATHERV_ENABLE");
    if (d->version < ATT_NCCL_ALLGATHERV || (value != NULL && strcmp(value, "0") == 0))
        att_doctor_add(d, "broadcast", ATT_CHECK_PASS, NULL, "Broadcast can be timed");
    else
        att_doctor_add(d, "broadcast", ATT_CHECK_WARN,
                       "NCCL_ALLGATHERV_ENABLE=0, when the job broadcasts in its steps",
                       "since NCCL 2.29.2 the profiler is told nothing about Broadcast: it keeps "
                       "NCCL's choice; several roots in one group end the timing of the job");
}

static const char *variable(const void *doctor, const char *name)
{
    return att_doctor_variable(doctor, name);
}

static void check_policy(att_doctor_t *d)
{
    if (att_pins_efficiency(variable, d, 0))
        att_doctor_add(d, "cta-policy", ATT_CHECK_WARN,
                       "run the job without attune where that choice matters",
                       "NCCL_CTA_POLICY=%.60s: with any tuner plugin loaded NCCL does not choose "
                       "NVLS for registered buffers",
                       att_doctor_variable(d, "NCCL_CTA_POLICY"));
    else
        att_doctor_add(d, "cta-policy", ATT_CHECK_PASS, NULL,
                       "NCCL_CTA_POLICY asks for no choice that a tuner plugin takes away");
}

void att_doctor_machine(att_doctor_t *d)
{
    check_gpu_direct(d, check_rdma(d));
    check_sockets(d);
    check_ports(d);
    check_interface(d);
    check_affinity(d);
    check_timing_room(d);
    check_broadcast(d);
    check_policy(d);
}
