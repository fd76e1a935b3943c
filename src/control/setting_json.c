#include "control/setting_json.h"

#include "base/names.h"

json_t *att_setting_to_json(att_setting_t s)
{
    return json_pack("{s:s,s:s,s:s,s:i,s:i,s:I}", "algorithm", att_algorithm_name(s.algorithm),
                     "protocol", att_protocol_name(s.protocol), "transport",
                     att_transport_name(s.transport), "channels", (int)s.channels, "threads",
                     (int)s.threads, "chunk", (json_int_t)s.chunk_bytes);
}

static int knob(const json_t *object, const char *name, int (*parse)(const char *), int *value)
{
    const json_t *field = json_object_get(object, name);
    int number = json_is_string(field) ? parse(json_string_value(field)) : -2;
    *value = number;
    return number == -2;
}

int att_json_number(const json_t *object, const char *name, uint64_t largest, uint64_t *value)
{
    const json_t *field = json_object_get(object, name);
    if (!json_is_integer(field) || json_integer_value(field) < 0 ||
        (uint64_t)json_integer_value(field) > largest)
        return 1;
    *value = (uint64_t)json_integer_value(field);
    return 0;
}

int att_setting_of_json(const json_t *object, att_setting_t *setting)
{
    int algorithm, protocol, transport;
    uint64_t channels, threads, chunk;
    if (knob(object, "algorithm", att_algorithm_parse, &algorithm) ||
        knob(object, "protocol", att_protocol_parse, &protocol) ||
        knob(object, "transport", att_transport_parse, &transport) ||
        att_json_number(object, "channels", 1024, &channels) ||
        att_json_number(object, "threads", 4096, &threads) ||
        att_json_number(object, "chunk", UINT32_MAX, &chunk))
        return 1;
    *setting = (att_setting_t){.algorithm = (int8_t)algorithm,
                               .protocol = (int8_t)protocol,
                               .transport = (int8_t)transport,
                               .channels = (uint16_t)channels,
                               .threads = (uint16_t)threads,
                               .chunk_bytes = (uint32_t)chunk};
    return 0;
}
