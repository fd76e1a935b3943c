/* near: compares doubles; cmocka 1.1 compares floats only. Include it after cmocka.h. */
#ifndef ATT_TEST_SIM_NEAR_H
#define ATT_TEST_SIM_NEAR_H

#define assert_near(value, expected, tolerance)                                                    \
    do {                                                                                           \
        double value_ = (value), expected_ = (expected);                                           \
        if (!(value_ >= expected_ - (tolerance) && value_ <= expected_ + (tolerance)))             \
            fail_msg(#value " is %.12g, not %.12g", value_, expected_);                            \
    } while (0)

#endif
