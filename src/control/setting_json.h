/*
 * setting JSON: a setting as an object of the run folder's files.
 */
#ifndef ATT_CONTROL_SETTING_JSON_H
#define ATT_CONTROL_SETTING_JSON_H

#include "attune/setting.h"

#include <jansson.h>

/* A new reference; NULL without memory. */
json_t *att_setting_to_json(att_setting_t setting);
/* The unsigned integer of a field, at most `largest`. 0, or 1 when it is none. */
int att_json_number(const json_t *object, const char *name, uint64_t largest, uint64_t *value);
/* 0, or 1 when a field is missing or has no such value. */
int att_setting_of_json(const json_t *object, att_setting_t *setting);

#endif
