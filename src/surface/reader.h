/*
 * reader: takes checked values out of a JSON document and remembers where it is, so that the first
 * thing that is wrong is reported as one line: "/loads/1/name: expected a string".
 *
 * The first error sticks: later calls do nothing and return 0, NULL or an empty value, so that the
 * caller checks `status` once. Borrowed: the document must outlive what is returned.
 */
#ifndef ATT_SURFACE_READER_H
#define ATT_SURFACE_READER_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef struct att_reader {
    char where[160]; /* JSON pointer of the object that is being read, "" = the document */
    int status;      /* 0 or -ATT_E... */
    att_error_t *error;
} att_reader_t;

/* Remember the first error at `key` of the current object (NULL: the object itself). */
void att_reader_fail(att_reader_t *reader, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Go down to a member or element; gives the length to come back to with att_reader_leave. */
size_t att_reader_enter(att_reader_t *reader, const char *key);
size_t att_reader_enter_index(att_reader_t *reader, size_t index);
void att_reader_leave(att_reader_t *reader, size_t mark);

/* Every key of the object must be one of `known` (ends with NULL). */
void att_reader_known(att_reader_t *reader, json_t *object, const char *const *known);

json_t *att_reader_object(att_reader_t *reader, json_t *object, const char *key);
/* An array of minimum..maximum elements. */
json_t *att_reader_array(att_reader_t *reader, json_t *object, const char *key, size_t minimum,
                         size_t maximum);
/* Element of an array, which must be an object. */
json_t *att_reader_element(att_reader_t *reader, json_t *array, size_t index);
/* Text without control characters, 1..200 bytes. */
const char *att_reader_text(att_reader_t *reader, json_t *object, const char *key);
/* Numbers within [minimum, maximum]. */
double att_reader_number(att_reader_t *reader, json_t *object, const char *key, double minimum,
                         double maximum);
int64_t att_reader_integer(att_reader_t *reader, json_t *object, const char *key, int64_t minimum,
                           int64_t maximum);
/* A word that `parse` knows (>= 0). */
int att_reader_word(att_reader_t *reader, json_t *object, const char *key,
                    int (*parse)(const char *word), const char *expected);

#endif
