/* A program that is measured with PAPI: prints the values of the events that are its arguments, as
 * they are now; with --line first, what they gained until a line came on standard input. */
#include <papi.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what, int status)
{
    fprintf(stderr, "%s: %s\n", what, PAPI_strerror(status));
    return 1;
}

int main(int argc, char **argv)
{
    int first = 1, set = PAPI_NULL;
    int wait = argc > 1 && strcmp(argv[1], "--line") == 0;
    long long values[64] = {0};
    first += wait;
    int status = PAPI_library_init(PAPI_VER_CURRENT);
    if (status != PAPI_VER_CURRENT)
        return fail("PAPI_library_init", status);
    if ((status = PAPI_create_eventset(&set)) != PAPI_OK)
        return fail("PAPI_create_eventset", status);
    for (int i = first; i < argc && i < 64; i++)
        if ((status = PAPI_add_named_event(set, argv[i])) != PAPI_OK)
            return fail(argv[i], status);
    if ((status = PAPI_start(set)) != PAPI_OK)
        return fail("PAPI_start", status);
    if (wait) {
        puts("started");
        fflush(stdout);
        getchar();
    }
    if ((status = PAPI_stop(set, values)) != PAPI_OK)
        return fail("PAPI_stop", status);
    for (int i = first; i < argc && i < 64; i++)
        printf("%s %lld\n", argv[i], values[i - first]);
    return 0;
}
