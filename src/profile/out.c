#include "profile/out.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* The file that a name stands for, and a place beside it. "" in place: written directly. */
static int choose_place(att_out_t *out, const char *path, char target[4096], att_error_t *error)
{
    struct stat about;
    out->place[0] = '\0';
    if (strlen(path) > sizeof out->path - 8) {
        errno = ENAMETOOLONG;
        return att_fail_errno(error, "cannot write %.80s...", path);
    }
    snprintf(target, sizeof out->path, "%s", path);
    if (lstat(path, &about) == 0 && S_ISLNK(about.st_mode)) {
        char real[PATH_MAX];
        if (realpath(path, real) != NULL && strlen(real) < sizeof out->path - 8)
            snprintf(target, sizeof out->path, "%s", real);
    }
    if (stat(target, &about) != 0 || S_ISREG(about.st_mode))
        snprintf(out->place, sizeof out->place, "%.4091s.tmp", target);
    return ATT_OK;
}

int att_out_open(att_out_t *out, const char *path, att_error_t *error)
{
    size_t length = strlen(path);
    int compressed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    char target[sizeof out->path];
    out->bytes = 0;
    out->used = 0;
    out->failed = 0;
    out->place[0] = '\0';
    if (strcmp(path, "-") != 0) {
        int status = choose_place(out, path, target, error);
        if (status != ATT_OK)
            return status;
    }
    snprintf(out->path, sizeof out->path, "%s", strcmp(path, "-") == 0 ? "standard output" : path);
    /* Level 1: the text is so regular that more effort gains little. T: no compression. */
    out->gzip = strcmp(path, "-") == 0 ? gzdopen(dup(STDOUT_FILENO), "wT")
                                       : gzopen(out->place[0] != '\0' ? out->place : path,
                                                compressed ? "wbe1" : "wbeT");
    if (out->gzip == NULL)
        return att_fail_errno(error, "cannot write %s", path);
    gzbuffer(out->gzip, 1u << 17);
    return ATT_OK;
}

static void drain(att_out_t *out)
{
    errno = 0;
    if (out->used > 0 && out->failed == 0 &&
        gzwrite(out->gzip, out->buffer, out->used) != (int)out->used)
        out->failed = errno != 0 ? errno : EIO;
    out->used = 0;
}

int att_out_close(att_out_t *out, att_error_t *error)
{
    char target[sizeof out->path];
    drain(out);
    errno = 0;
    if (gzclose(out->gzip) != Z_OK && out->failed == 0)
        out->failed = errno != 0 ? errno : EIO;
    out->gzip = NULL;
    if (out->place[0] != '\0') {
        snprintf(target, sizeof target, "%.*s", (int)(strlen(out->place) - 4), out->place);
        if (out->failed == 0 && rename(out->place, target) != 0)
            out->failed = errno;
        if (out->failed != 0)
            unlink(out->place);
    }
    errno = out->failed;
    return out->failed == 0 ? ATT_OK : att_fail_errno(error, "cannot write %s", out->path);
}

void att_out_discard(att_out_t *out)
{
    gzclose(out->gzip);
    out->gzip = NULL;
    if (out->place[0] != '\0')
        unlink(out->place);
}

void att_out_bytes(att_out_t *out, const char *bytes, size_t size)
{
    out->bytes += size;
    while (size > ATT_OUT_BUFFER - out->used) {
        size_t part = ATT_OUT_BUFFER - out->used;
        memcpy(out->buffer + out->used, bytes, part);
        out->used += (uint32_t)part;
        bytes += part;
        size -= part;
        drain(out);
    }
    memcpy(out->buffer + out->used, bytes, size);
    out->used += (uint32_t)size;
}

void att_out_text(att_out_t *out, const char *text)
{
    att_out_bytes(out, text, strlen(text));
}

void att_out_string(att_out_t *out, const char *text)
{
    att_out_literal(out, "\"");
    for (const char *c = text; *c != '\0'; c++) {
        char escaped[8];
        if (*c == '"' || *c == '\\') {
            escaped[0] = '\\';
            escaped[1] = *c;
            att_out_bytes(out, escaped, 2);
        } else if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f) {
            /* Names come from files: a byte that is no ASCII need not be UTF-8. */
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned char)*c);
            att_out_bytes(out, escaped, 6);
        } else {
            att_out_bytes(out, c, 1);
        }
    }
    att_out_literal(out, "\"");
}

void att_out_u64(att_out_t *out, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    att_out_bytes(out, digits + at, sizeof digits - at);
}

void att_out_i64(att_out_t *out, int64_t number)
{
    if (number < 0)
        att_out_literal(out, "-");
    att_out_u64(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void att_out_us(att_out_t *out, int64_t ns)
{
    uint64_t whole = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    if (ns < 0)
        att_out_literal(out, "-");
    att_out_u64(out, whole / 1000);
    uint64_t rest = whole % 1000;
    char text[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                    (char)('0' + rest % 10)};
    att_out_bytes(out, text, sizeof text);
}

void att_out_real(att_out_t *out, double number)
{
    char text[32];
    att_out_bytes(out, text, (size_t)snprintf(text, sizeof text, "%.6g", number));
}

void att_out_hex(att_out_t *out, uint64_t number)
{
    char text[24];
    att_out_bytes(out, text,
                  (size_t)snprintf(text, sizeof text, "0x%llx", (unsigned long long)number));
}
