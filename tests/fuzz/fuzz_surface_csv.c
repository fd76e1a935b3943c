/* CSV files of any bytes. */
#include "fuzz_recorded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_recorded((const char *)data, size);
    return 0;
}
