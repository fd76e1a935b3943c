/* bench_record: `attune record`, see attune-record(1). */
#ifndef ATT_CLI_BENCH_RECORD_H
#define ATT_CLI_BENCH_RECORD_H

int att_record_main(int argc, char **argv);

#endif
