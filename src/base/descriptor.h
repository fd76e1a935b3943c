/*
 * descriptor: file descriptors in a process that may have been started with closed standard
 * streams.
 *
 * There the next file that is opened becomes descriptor 0, 1 or 2, and whatever the program, its
 * MPI or Python prints goes into that file: into shared memory, for one. A library keeps what it
 * writes to out of these three; a program of our own occupies them first.
 */
#ifndef ATT_BASE_DESCRIPTOR_H
#define ATT_BASE_DESCRIPTOR_H

/* The same open file at a descriptor of 3 or more, close-on-exec; fd itself when it is one already,
 * or an error (-1, errno kept). When there is no such descriptor, fd is closed: -1, errno is set.
 * Before any record lock is taken through fd: the close would drop it. */
int att_descriptor_keep(int fd);

/* /dev/null for those of 0, 1 and 2 that are closed. flags: O_CLOEXEC leaves them closed for
 * programs that are started, and writing to standard output fails as before: a result that gets
 * lost is an error. 0 gives them /dev/null. Where there is no /dev/null they stay closed. */
void att_descriptor_hold_standard(int flags);

/* At the end of a program: flush stdout. A result that is not written in full is no success: that
 * is logged, and ATT_ESYSTEM takes the place of status 0. Returns the status. */
int att_descriptor_finish_output(int status);

#endif
