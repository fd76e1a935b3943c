#include "control/writer.h"

#include "base/log.h"
#include "profile/metrics.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct att_writer_file {
    char *path;
    void *data; /* to be written, or what the text is made of; NULL: nothing */
    size_t length;
    att_writer_make_fn make; /* NULL: data is the text */
} att_writer_file_t;

struct att_writer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    bool busy, ending;
    att_writer_file_t files[ATT_WRITER_FILES];
};

/* The next one that waits; with the lock held. */
static att_writer_file_t *waiting(struct att_writer *w)
{
    for (int i = 0; i < ATT_WRITER_FILES; i++)
        if (w->files[i].data != NULL)
            return &w->files[i];
    return NULL;
}

static void write_file(const att_writer_file_t *work)
{
    static att_log_site_t site;
    char *text = work->data;
    size_t length = work->length;
    if (work->make != NULL) {
        text = work->make(work->data, &length);
        free(work->data);
    }
    att_error_t error;
    if (text == NULL)
        att_log_limited(&site, ATT_LOG_ERROR, "no memory for %s", work->path);
    else if (att_metrics_replace(work->path, text, length, &error) != ATT_OK)
        att_log_limited(&site, ATT_LOG_ERROR, "%s", error.text);
    free(text);
}

static void *write_files(void *context)
{
    struct att_writer *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        att_writer_file_t *file = waiting(w);
        if (file == NULL && w->ending)
            break;
        if (file == NULL) {
            w->busy = false;
            pthread_cond_broadcast(&w->idle);
            pthread_cond_wait(&w->work, &w->lock);
            continue;
        }
        att_writer_file_t work = *file;
        file->data = NULL;
        w->busy = true;
        pthread_mutex_unlock(&w->lock);
        write_file(&work);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int att_writer_create(struct att_writer **out, att_error_t *error)
{
    struct att_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    pthread_cond_init(&w->idle, NULL);
    /* Signals are for the thread that looks at them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&w->thread, NULL, write_files, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        free(w);
        return att_fail(error, ATT_ESYSTEM, "cannot start a thread that writes the run folder: %s",
                        strerror(rc));
    }
    *out = w;
    return ATT_OK;
}

void att_writer_destroy(struct att_writer *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->idle);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
    for (int i = 0; i < ATT_WRITER_FILES; i++)
        free(w->files[i].path);
    free(w);
}

/* The file of a path, or a free one that becomes it; with the lock held. */
static att_writer_file_t *file_of(struct att_writer *w, const char *path)
{
    for (int i = 0; i < ATT_WRITER_FILES; i++) {
        att_writer_file_t *file = &w->files[i];
        if (file->path == NULL)
            file->path = strdup(path);
        if (file->path == NULL)
            return NULL;
        if (strcmp(file->path, path) == 0)
            return file;
    }
    return NULL;
}

static int put(struct att_writer *w, const char *path, void *data, size_t length,
               att_writer_make_fn make)
{
    pthread_mutex_lock(&w->lock);
    att_writer_file_t *file = file_of(w, path);
    void *old = data;
    if (file != NULL) {
        old = file->data;
        file->data = data;
        file->length = length;
        file->make = make;
        w->busy = true;
        pthread_cond_signal(&w->work);
    }
    pthread_mutex_unlock(&w->lock);
    free(old);
    return file != NULL ? ATT_OK : -ATT_ENOMEM;
}

int att_writer_put(struct att_writer *w, const char *path, char *text, size_t length)
{
    return put(w, path, text, length, NULL);
}

int att_writer_make(struct att_writer *w, const char *path, att_writer_make_fn make, void *data)
{
    return put(w, path, data, 0, make);
}

void att_writer_flush(struct att_writer *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    while (w->busy)
        pthread_cond_wait(&w->idle, &w->lock);
    pthread_mutex_unlock(&w->lock);
}
