/*
 * driver: runs a fuzz target where libFuzzer is not to be had. Every seed once as it is, then
 * random mutations of them until the time is over. The input in work is kept in a file, so that it
 * is there when the target dies.
 *
 * usage: fuzz_<name> SECONDS FAILED-FILE SEED-FOLDER
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LARGEST 65536
#define SEEDS   256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Shared with the file, so that a crash needs no handler to leave its input behind. */
typedef struct work {
    uint64_t size;
    uint8_t bytes[LARGEST];
} work_t;

static uint8_t *seeds[SEEDS];
static size_t sizes[SEEDS];
static size_t seed_count;

static void read_seeds(const char *folder)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL && seed_count < SEEDS) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file == NULL)
            continue;
        seeds[seed_count] = malloc(LARGEST);
        sizes[seed_count] = fread(seeds[seed_count], 1, LARGEST, file);
        seed_count++;
        fclose(file);
    }
    if (entries != NULL)
        closedir(entries);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void mutate(work_t *work, uint64_t *random)
{
    static const char *const words[] = {"0",   "-1",   "1e999", "18446744073709551616",
                                        "nan", "null", "\"",    "{",
                                        "}",   "[",    "]",     ",",
                                        ":",   "=",    "%",     "\\u0000",
                                        "KiB", "x"};
    for (uint64_t i = 1 + next_random(random) % 6; i > 0; i--) {
        size_t at = work->size > 0 ? next_random(random) % work->size : 0;
        size_t length;
        const char *word;
        const uint8_t *other;
        switch (next_random(random) % 6) {
        case 0: /* another byte */
            if (work->size > 0)
                work->bytes[at] = (uint8_t)next_random(random);
            break;
        case 1: /* one bit */
            if (work->size > 0)
                work->bytes[at] ^= (uint8_t)(1u << next_random(random) % 8);
            break;
        case 2: /* a piece less */
            length = next_random(random) % (next_random(random) % 8 == 0 ? 4096 : 16);
            length = length < work->size - at ? length : work->size - at;
            memmove(work->bytes + at, work->bytes + at + length, work->size - at - length);
            work->size -= length;
            break;
        case 3: /* a word that parsers know */
            word = words[next_random(random) % (sizeof words / sizeof *words)];
            length = strlen(word);
            if (work->size + length > LARGEST)
                break;
            memmove(work->bytes + at + length, work->bytes + at, work->size - at);
            memcpy(work->bytes + at, word, length);
            work->size += length;
            break;
        case 4: /* cut off */
            work->size = at;
            break;
        default: /* a piece of another seed */
            length = seed_count > 0 ? next_random(random) % seed_count : 0;
            other = seed_count > 0 ? seeds[length] : NULL;
            if (other == NULL || sizes[length] == 0)
                break;
            {
                size_t from = next_random(random) % sizes[length];
                size_t most =
                    sizes[length] - from < LARGEST - at ? sizes[length] - from : LARGEST - at;
                size_t copied = next_random(random) % 64 < most ? next_random(random) % 64 : most;
                copied = copied < most ? copied : most;
                memcpy(work->bytes + at, other + from, copied);
                work->size = at + copied > work->size ? at + copied : work->size;
            }
            break;
        }
    }
}

static void try_input(const work_t *work)
{
    /* Of its exact size on the heap, so that AddressSanitizer sees a read past its end. */
    uint8_t *copy = malloc(work->size > 0 ? work->size : 1);
    if (copy == NULL)
        abort();
    memcpy(copy, work->bytes, work->size);
    LLVMFuzzerTestOneInput(copy, work->size);
    free(copy);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s SECONDS FAILED-FILE SEED-FOLDER\n", argv[0]);
        return 2;
    }
    read_seeds(argv[3]);
    int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    work_t *work = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof *work) == 0)
        work = mmap(NULL, sizeof *work, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (work == MAP_FAILED) {
        perror(argv[2]);
        return 2;
    }
    close(fd);
    uint64_t random = 88172645463325252ull, inputs = 0;
    time_t end = time(NULL) + atoi(argv[1]);
    for (size_t i = 0; i < seed_count; i++, inputs++) {
        work->size = sizes[i];
        memcpy(work->bytes, seeds[i], sizes[i]);
        try_input(work);
    }
    while (time(NULL) < end) {
        for (int i = 0; i < 100; i++, inputs++) {
            size_t seed = seed_count > 0 ? next_random(&random) % seed_count : 0;
            work->size = seed_count > 0 ? sizes[seed] : 0;
            if (seed_count > 0)
                memcpy(work->bytes, seeds[seed], sizes[seed]);
            mutate(work, &random);
            try_input(work);
        }
    }
    munmap(work, sizeof *work);
    unlink(argv[2]);
    for (size_t i = 0; i < seed_count; i++)
        free(seeds[i]);
    printf("%llu inputs\n", (unsigned long long)inputs);
    return 0;
}
