#include "cli/report_format.h"

#include "base/names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DASH "\xe2\x80\x93" /* not measured, not there */

/* False, and a dash, when the value is no number. */
static bool number(const json_t *value, double *number, char *text, size_t size)
{
    snprintf(text, size, DASH);
    *number = json_number_value(value);
    return json_is_number(value) && isfinite(*number);
}

void att_report_duration_text(double us, char *text, size_t size)
{
    double absolute = fabs(us);
    if (absolute < 0.005) {
        snprintf(text, size, "0 \xc2\xb5s");
        return;
    }
    if (absolute < 1e3)
        snprintf(text, size, absolute < 100 ? "%.2f \xc2\xb5s" : "%.1f \xc2\xb5s", us);
    else if (absolute < 1e6)
        snprintf(text, size, absolute < 1e5 ? "%.2f ms" : "%.1f ms", us * 1e-3);
    else if (absolute < 120e6)
        snprintf(text, size, "%.1f s", us * 1e-6);
    else if (absolute < 7200e6)
        snprintf(text, size, "%.0f min %02.0f s", floor(us / 60e6), fmod(us * 1e-6, 60));
    else
        snprintf(text, size, "%.1f h", us / 3600e6);
}

static void write_us(const json_t *value, char *text, size_t size)
{
    double us;
    if (number(value, &us, text, size))
        att_report_duration_text(us, text, size);
}

static void write_seconds(const json_t *value, char *text, size_t size)
{
    double s;
    if (number(value, &s, text, size))
        att_report_duration_text(s * 1e6, text, size);
}

static void write_gbs(const json_t *value, char *text, size_t size)
{
    double gbs;
    if (number(value, &gbs, text, size))
        snprintf(text, size, gbs < 1 ? "%.4f" : gbs < 100 ? "%.2f" : "%.1f", gbs);
}

static void write_ratio(const json_t *value, char *text, size_t size)
{
    double ratio;
    if (number(value, &ratio, text, size))
        snprintf(text, size, "%.3f\xc3\x97", ratio);
}

static void write_percent(const json_t *value, char *text, size_t size)
{
    double share;
    if (number(value, &share, text, size))
        /* Neither nearly nothing nor nearly everything is rounded to it. */
        snprintf(text, size,
                 (share != 0 && fabs(share) < 0.001) || (share < 1 && share > 0.999) ? "%.3f %%"
                                                                                     : "%.1f %%",
                 100 * share);
}

static void write_change(const json_t *value, char *text, size_t size)
{
    double share;
    if (number(value, &share, text, size))
        snprintf(text, size, "%+.1f %%", 100 * share);
}

/* A rate or level of any unit. */
static void write_rate(const json_t *value, char *text, size_t size)
{
    double rate;
    if (!number(value, &rate, text, size))
        return;
    double absolute = fabs(rate);
    if (absolute >= 1e9)
        snprintf(text, size, "%.2fe9", rate * 1e-9);
    else if (absolute >= 1e6)
        snprintf(text, size, "%.2fe6", rate * 1e-6);
    else
        snprintf(text, size, absolute >= 100 ? "%.0f" : "%.3g", rate);
}

static void write_count(const json_t *value, char *text, size_t size)
{
    double count;
    if (!number(value, &count, text, size))
        return;
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%.0f", count), used = 0;
    for (int i = 0; i < length && (size_t)used + 2 < size; i++) {
        text[used++] = digits[i];
        if ((length - i - 1) % 3 == 0 && i + 1 < length && digits[i] != '-')
            text[used++] = ',';
    }
    text[used] = '\0';
}

static void write_bytes(const json_t *value, char *text, size_t size)
{
    double bytes;
    if (!number(value, &bytes, text, size) || bytes < 0)
        return;
    char exact[24];
    att_bytes_text((uint64_t)bytes, exact, sizeof exact);
    size_t last = strlen(exact) - 1;
    if (strchr("KMGT", exact[last]) != NULL)
        snprintf(text, size, "%.*s %ciB", (int)last, exact, exact[last]);
    else if (bytes >= 1048576)
        snprintf(text, size, "%.2f MiB", bytes / 1048576);
    else if (bytes >= 10240)
        snprintf(text, size, "%.1f KiB", bytes / 1024);
    else
        snprintf(text, size, "%s B", exact);
}

/* A share for CSS: 0 to 1. */
static void write_width(const json_t *value, char *text, size_t size)
{
    double share = json_number_value(value);
    snprintf(text, size, "%.4f", isfinite(share) ? fmin(fmax(share, 0), 1) : 0);
}

static void write_or_dash(const json_t *value, char *text, size_t size)
{
    const char *string = json_string_value(value);
    snprintf(text, size, "%s", string != NULL && string[0] != '\0' ? string : DASH);
}

const att_template_format_t att_report_formats[ATT_REPORT_FORMATS] = {
    {"us", write_us},        {"s", write_seconds},       {"gbs", write_gbs},
    {"ratio", write_ratio},  {"percent", write_percent}, {"change", write_change},
    {"count", write_count},  {"bytes", write_bytes},     {"width", write_width},
    {"dash", write_or_dash}, {"rate", write_rate},
};
