/* attune pin, attune unpin: hold tasks of a running job where they are, and let them go again. */
#ifndef ATT_CLI_PIN_H
#define ATT_CLI_PIN_H

int att_pin_main(int argc, char **argv);
int att_unpin_main(int argc, char **argv);

#endif
