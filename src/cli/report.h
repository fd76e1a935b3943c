/* report: `attune report`: what a run was and gained, as one page; two results compared. */
#ifndef ATT_CLI_REPORT_H
#define ATT_CLI_REPORT_H

int att_report_main(int argc, char **argv);

#endif
